const secret =
  /key|token|secret|passw|passphrase|pwd|auth|bearer|credential|cookie|signature|^sig$|(?:^|_)pa(?:t|ss)$|dsn$/;

/** Words that contain one of these but do not name a secret, such as `author` and `max_tokens`. */
const harmless =
  /^(?:old_?)?pwd$|author(?!iz)|tokeni[sz]|key(?:board|word|cloak|map|frame)|monkey|(?:max|min|num|new|completion|prompt)_tokens|(?:primary|foreign|sort|partition|public)_key/g;

/** Name endings that describe a secret's use or place, such as `auth_mode`. */
const about =
  /_(?:type|mode|method|scheme|name|file|path|dir|sock|url|uri|host|port|endpoint|realm|issuer|audience|alg|algorithm|provider|prefix|length|size|limit|count|ttl|enabled|required|format|version|env)$/;

/** Names of values that look like keys but are not secret: a commit, a digest. */
const digest = /(?:^|_)(?:commit|sha|sha1|sha256|digest|hash|checksum|rev|revision|ref)$/;

/** True if a value of this name is a hash, such as `BASE_COMMIT`. */
export function isDigestName(name: string): boolean {
  return digest.test(wordsOf(name));
}

/** True if a value of this name is a secret, such as `api_key` or `Authorization`. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name);
  return !about.test(words) && secret.test(words.replaceAll(harmless, ""));
}

/** Names of query parameters whose values give access, beside the names of secrets. */
const parameter =
  /^(?:code|jwt|sas|sid|otp|pin|pw|hmac|ticket|saml_?(?:response|request)|(?:client_)?assertion|(?:[a-z]+_)?session(?:_?id)?)$/;

/** True if a query parameter of this name is a secret, such as `code`, by which Azure Functions and OAuth grant access. */
export function isSecretParameter(name: string): boolean {
  return isSecretName(name) || parameter.test(wordsOf(name));
}

function wordsOf(name: string): string {
  return name
    .replaceAll(/([a-z\d])([A-Z])/g, "$1_$2")
    .replaceAll(/[^A-Za-z\d]+/g, "_")
    .toLowerCase();
}
