/**
 * An engine's address as all write it who compare it: origin and path, without a slash in the end.
 * `undefined` for what is none, or says more: a user, a query, a fragment.
 */
export function engineAddress(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname, username, password, search, hash } = new URL(text);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  if (`${username}${password}${search}${hash}` !== "") return undefined;
  return origin + pathname.replace(/\/+$/, "");
}
