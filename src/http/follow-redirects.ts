import type { Dispatcher } from "undici";
import { UsageError } from "../errors.ts";

const maxRedirects = 5;
const redirectCodes: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a request to an address and follows redirects.
 *
 * @param send - Sends the request. `isOwn` is true if the target has the address's own origin; only then may it
 * receive the headers.
 * @throws UsageError for too many redirects, and for a redirect from HTTPS to another protocol; and any error of
 * `send`.
 */
export async function followRedirects(
  url: string,
  send: (target: URL, how: { readonly isOwn: boolean }) => Promise<Dispatcher.ResponseData>,
): Promise<Dispatcher.ResponseData> {
  const { origin } = new URL(url);
  let target = new URL(url);
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const reply = await send(target, { isOwn: target.origin === origin });
    const { location } = reply.headers;
    if (!redirectCodes.has(reply.statusCode) || typeof location !== "string") return reply;
    await reply.body.dump();
    const next = new URL(location, target);
    if (target.protocol === "https:" && next.protocol !== "https:") {
      throw new UsageError(
        `Cannot download ${url}: it leads to ${next.origin}, which is not HTTPS`,
      );
    }
    target = next;
  }
  throw new UsageError(`Cannot download ${url}: more than ${maxRedirects} redirects`);
}
