/**
 * Returns an engine's address in a form that can be compared: origin and path, without a final
 * slash. Returns `undefined` for an invalid URL, or a URL with a user, a query or a fragment.
 */
export function engineAddress(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname, username, password, search, hash } = new URL(text);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  if (`${username}${password}${search}${hash}` !== "") return undefined;
  return origin + pathname.replace(/\/+$/, "");
}
