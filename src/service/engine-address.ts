/**
 * Returns an engine's address in the form for comparisons: origin and path, without a final slash.
 * Returns `undefined` for an invalid URL, or one with a user, a query or a fragment.
 */
export function engineAddress(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname, username, password, search, hash } = new URL(text);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  if (`${username}${password}${search}${hash}` !== "") return undefined;
  return origin + pathname.replace(/\/+$/, "");
}
