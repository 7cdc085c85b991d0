import { createHash, timingSafeEqual } from "node:crypto";
import { isLocalAddress } from "../../internal/local-host.ts";
import { ClientError } from "../client-error.ts";
import type { Gateway } from "../gateway.ts";
import type { GatewaySession } from "../session/session.ts";

/** Who may do what. */
export interface AccessRules {
  /** Needed to open, look at and end sessions; absent: whoever reaches the gateway may. */
  readonly adminToken?: string;
  /** Whether a key that is not known opens a session of its own. */
  readonly opensSessions: boolean;
  /**
   * Whether requests must be meant for this machine: pages in a browser reach a port of it by names
   * that lead here, too.
   */
  readonly checksHost: boolean;
}

/** @throws ClientError `forbidden` for a request that was not meant for this machine. */
export function requireLocal({ headers }: Request, { checksHost }: AccessRules): void {
  if (!checksHost) return;
  const host = headers.get("host");
  if (host !== null && !isLocalAddress(`http://${host}`)) {
    throw new ClientError("forbidden", `Requests to ${host} are not answered: use 127.0.0.1`);
  }
  const origin = headers.get("origin");
  if (origin !== null && !isLocalAddress(origin)) {
    throw new ClientError("forbidden", "Requests of pages elsewhere are not answered");
  }
}

/** @throws ClientError `unauthorized` where an admin token is needed and is not there. */
export function requireAdmin({ headers }: Request, { adminToken }: AccessRules): void {
  if (adminToken === undefined || isSame(bearerOf(headers) ?? "", adminToken)) return;
  throw new ClientError("unauthorized", "The admin token is missing or wrong");
}

/**
 * The admin, or whoever has the session's own key, also of one that is over.
 *
 * @throws ClientError `unauthorized` for anybody else.
 */
export function requireOwner(
  request: Request,
  rules: AccessRules,
  { gateway, sessionId }: { readonly gateway: Gateway; readonly sessionId: string },
): void {
  const key = bearerOf(request.headers) ?? request.headers.get("x-api-key") ?? undefined;
  if (key !== undefined && gateway.store.idByToken(key) === sessionId) return;
  requireAdmin(request, rules);
}

/** Compares in a time that says nothing of either. */
export function isSame(given: string, wanted: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given), hash(wanted));
}

/** The token of an `Authorization: Bearer` header. */
export function bearerOf(headers: Headers): string | undefined {
  return /^Bearer\s+(.+)$/i.exec(headers.get("authorization") ?? "")?.[1]?.trim();
}

/**
 * The session of a request: by its URL, its API key, or a header, in this order.
 *
 * @param inUrl - The token in the URL; absent where there is none.
 * @throws ClientError `unauthorized` where there is none, `finished` where it is over.
 */
export async function findSession(
  gateway: Gateway,
  request: Request,
  { inUrl, rules }: { readonly inUrl: string | undefined; readonly rules: AccessRules },
): Promise<GatewaySession> {
  const { headers } = request;
  if (inUrl !== undefined) return await byToken(gateway, inUrl, rules);
  const keys = [bearerOf(headers), headers.get("x-api-key"), headers.get("x-turnwright-session")];
  const given = keys.filter((key) => key !== undefined && key !== null && key !== "");
  for (const key of given) {
    const session = gateway.store.byToken(key!);
    if (session !== undefined) return session;
  }
  const [first] = given;
  if (first !== undefined && first !== null) return await byToken(gateway, first, rules);
  throw new ClientError("unauthorized", "No session: give its token as the API key or in the URL");
}

async function byToken(
  gateway: Gateway,
  token: string,
  { opensSessions, adminToken }: AccessRules,
): Promise<GatewaySession> {
  const known = gateway.store.byToken(token);
  if (known !== undefined) return known;
  const isAdmin = adminToken !== undefined && isSame(token, adminToken);
  if (!opensSessions || isAdmin) {
    const message = "There is no session of this token: open one with POST /sessions";
    throw new ClientError("unauthorized", message);
  }
  await gateway.openSession({}, token);
  return gateway.store.byToken(token)!;
}
