const secret =
  /key|token|secret|passw|passphrase|pwd|auth|bearer|credential|cookie|signature|^sig$|(?:^|_)pa(?:t|ss)$|dsn$/;

/** Words that hold one of these and name no secret, such as `author` and `max_tokens`. */
const harmless =
  /author(?!iz)|tokeni[sz]|key(?:board|word|cloak|map|frame)|monkey|(?:max|min|num|new|completion|prompt)_tokens|(?:primary|foreign|sort|partition|public)_key/g;

/** The ends of names that tell of a secret how it is used or where it lies, such as `auth_mode`. */
const about =
  /_(?:type|mode|method|scheme|name|file|path|dir|sock|url|uri|host|port|endpoint|realm|issuer|audience|alg|algorithm|provider|prefix|length|size|limit|count|ttl|enabled|required|format|version|env)$/;

/** Tells whether a value of this name is a secret, such as `api_key` or `Authorization`. */
export function isSecretName(name: string): boolean {
  const words = name
    .replaceAll(/([a-z\d])([A-Z])/g, "$1_$2")
    .replaceAll(/[^A-Za-z\d]+/g, "_")
    .toLowerCase();
  return !about.test(words) && secret.test(words.replaceAll(harmless, ""));
}
