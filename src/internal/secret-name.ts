const pattern =
  /key|token|secret|passw|passphrase|pwd|auth|credential|cookie|signature|^sig$|(?:^|_)pat$|dsn$/i;

/** Tells whether a value of this name is a secret, such as `api_key` or `Authorization`. */
export function isSecretName(name: string): boolean {
  return pattern.test(name);
}
