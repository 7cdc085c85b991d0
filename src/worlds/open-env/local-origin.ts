import type { IncomingMessage } from "node:http";

/** Whether an address is this machine's own alone. */
export function isLocalHost(host: string): boolean {
  return /^(?:localhost|\[?::1\]?|127(?:\.\d{1,3}){3})$/.test(host);
}

/**
 * Whether a request to a server of this machine alone comes from it: a page of the web that a browser shows
 * here is none, by whichever name it found the server.
 */
export function isLocalOrigin({ headers }: IncomingMessage): boolean {
  const { host = "", origin } = headers;
  if (!isLocalHost(hostnameOf(`http://${host}`))) return false;
  return origin === undefined || isLocalHost(hostnameOf(origin));
}

function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : "";
}
