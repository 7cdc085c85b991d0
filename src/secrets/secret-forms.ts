/**
 * Shorter forms would also be found where they are no secrets. A secret that is shorter is hidden only where its
 * place tells it, such as after `Bearer`.
 */
const minSecretLength = 8;

/** Returns the spellings of a secret that are looked for: in JSON, in URLs and in base64. */
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

/** JSON that stands in a text of JSON, as a tool's answer does, is escaped once more; so deep it is found. */
const jsonDepth = 4;

/** The secret in texts of JSON, of which Python's have no letters but those of ASCII. */
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

/** The letters that the secret's bytes give in base64, wherever in a longer text they begin. */
function base64Forms(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, "utf8");
  return [0, 1, 2].flatMap((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
    // The first letters hold bits of what stands before, the last ones of what follows.
    const start = Math.ceil((offset * 8) / 6);
    const end = Math.floor((padded.length * 8) / 6);
    return [
      padded.toString("base64").slice(start, end),
      padded.toString("base64url").slice(start, end),
    ];
  });
}
