/**
 * Returns the path of a request's target, such as `/ws` for `/ws?x=1`; `undefined` for a target that is not a path
 * or not a valid URL, such as `*` or `//`.
 */
export function requestPath(target: string | undefined): string | undefined {
  if (target === undefined || !/^\/(?!\/)/.test(target)) return undefined;
  const address = `http://host${target}`;
  return URL.canParse(address) ? new URL(address).pathname : undefined;
}
