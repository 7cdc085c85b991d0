/** Whether a host is this machine's own alone: `localhost`, `::1` or any of 127.0.0.0/8. */
export function isLocalHost(host: string): boolean {
  return /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/.test(host);
}

/** Whether an address such as `http://127.0.0.1:8000` leads to this machine alone; false for what is none. */
export function isLocalAddress(address: string): boolean {
  if (!URL.canParse(address)) return false;
  return isLocalHost(new URL(address).hostname.replace(/^\[(.*)\]$/, "$1"));
}

/** Where a server is reached, such as `http://[::1]:8484`. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
