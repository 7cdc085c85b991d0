/**
 * The shortest form that is searched, in characters; shorter forms also occur in harmless text. A shorter secret is
 * hidden only if its place marks it, such as after `Bearer`.
 */
const minSecretLength = 8;

/** Returns the encodings of a secret that are searched: in JSON, in URLs and in base64. */
export function formsOf(secret: string): readonly string[] {
  const escaped = escapedForms(secret);
  const encoded = encodeURIComponent(secret);
  const lowerCase = encoded.replaceAll(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase());
  const spaces = encoded.replaceAll("%20", "+");
  const base64 = base64Forms(secret);
  return [secret, ...escaped, encoded, lowerCase, spaces, ...base64].filter(
    ({ length }) => length >= minSecretLength,
  );
}

/**
 * The number of JSON levels that are searched. JSON within a JSON string, as in a tool's answer, is escaped once
 * more at each level.
 */
const jsonDepth = 4;

/** The secret as JSON strings contain it, also with non-ASCII letters escaped as Python does. */
function escapedForms(secret: string): readonly string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const inAscii = inJson.replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const forms = [inJson, inAscii];
  for (let depth = 1; depth < jsonDepth; depth++) {
    forms.push(...forms.slice(-2).map((form) => JSON.stringify(form).slice(1, -1)));
  }
  return forms;
}

/** The base64 letters of the secret's bytes, for each of their three offsets in a longer text. */
function base64Forms(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, "utf8");
  return [0, 1, 2].flatMap((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
    // The first letters contain bits of the text before, the last ones bits of the text after.
    const start = Math.ceil((offset * 8) / 6);
    const end = Math.floor((padded.length * 8) / 6);
    return [
      padded.toString("base64").slice(start, end),
      padded.toString("base64url").slice(start, end),
    ];
  });
}
