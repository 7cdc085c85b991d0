/** True if a host name means this machine only: `localhost`, `::1` or any of 127.0.0.0/8. */
export function isLocalHost(host: string): boolean {
  return /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/.test(host);
}

/** True if a URL such as `http://127.0.0.1:8000` leads to this machine only; false for an invalid URL. */
export function isLocalAddress(address: string): boolean {
  if (!URL.canParse(address)) return false;
  return isLocalHost(new URL(address).hostname.replace(/^\[(.*)\]$/, "$1"));
}

/** The URL of a server, such as `http://[::1]:8484`. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
