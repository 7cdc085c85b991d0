import { createHash, timingSafeEqual } from "node:crypto";
import { isLocalAddress } from "../../http/local-host.ts";
import { ClientError } from "../client-error.ts";
import type { Gateway } from "../gateway.ts";
import { hashToken, isOwnerKey } from "../session/session-keys.ts";
import type { GatewaySession } from "../session/session.ts";

/** Who may do what. */
export interface AccessRules {
  /**
   * Opens, scores, shows and ends sessions. Absent: every program that reaches the gateway may open
   * sessions, and only a session's owner may do the rest.
   */
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

/**
 * Lets the admin pass. Without an admin token, every program that reaches the gateway passes, but none with
 * the key of an agent.
 *
 * @throws ClientError `unauthorized` for any other.
 */
export function requireAdmin({ headers }: Request, rules: AccessRules, { store }: Gateway): void {
  const { adminToken } = rules;
  if (adminToken === undefined) {
    if (!keysOf(headers).some((key) => store.isSamplingKey(key))) return;
    throw new ClientError("unauthorized", "An agent's key samples, and does nothing else");
  }
  if (isAdmin(headers, rules)) return;
  throw new ClientError("unauthorized", "The admin token is missing or wrong");
}

/**
 * Lets the admin pass, and the owner of a session, open or over. The answer to any other is the same whether
 * or not there is such a session.
 *
 * @throws ClientError `unauthorized` for any other.
 */
export function requireOwner(
  { headers }: Request,
  rules: AccessRules,
  { gateway, sessionId }: { readonly gateway: Gateway; readonly sessionId: string },
): void {
  const ownerHash = gateway.store.ownerHashOf(sessionId) ?? "";
  const isOwner = keysOf(headers).some((key) => isSame(hashToken(key), ownerHash));
  if (isOwner || isAdmin(headers, rules)) return;
  const message =
    "Only a session's ownerToken, which POST /sessions returned, or the admin token " +
    "scores, shows and ends it";
  throw new ClientError("unauthorized", message);
}

function isAdmin(headers: Headers, { adminToken }: AccessRules): boolean {
  return adminToken !== undefined && isSame(bearerOf(headers) ?? "", adminToken);
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

/** The keys that a request's headers carry. */
function keysOf(headers: Headers): readonly string[] {
  const keys = [bearerOf(headers), headers.get("x-api-key"), headers.get("x-turnwright-session")];
  return keys.filter((key) => key !== undefined && key !== null && key !== "") as string[];
}

/**
 * The session of a request: by its URL, its API key, or a header, in this order.
 *
 * @param inUrl - The token in the URL; absent where there is none.
 * @throws ClientError `unauthorized` where there is none, `finished` where it is over.
 */
export async function findSession(
  gateway: Gateway,
  { headers }: Request,
  { inUrl, rules }: { readonly inUrl: string | undefined; readonly rules: AccessRules },
): Promise<GatewaySession> {
  if (inUrl !== undefined) return await byToken(gateway, inUrl, rules);
  const keys = keysOf(headers);
  for (const key of keys) {
    const session = gateway.store.byToken(key);
    if (session !== undefined) return session;
  }
  const [first] = keys;
  if (first !== undefined) return await byToken(gateway, first, rules);
  throw new ClientError("unauthorized", "No session: give its token as the API key or in the URL");
}

async function byToken(
  gateway: Gateway,
  token: string,
  { opensSessions, adminToken }: AccessRules,
): Promise<GatewaySession> {
  const known = gateway.store.byToken(token);
  if (known !== undefined) return known;
  const isOther = isOwnerKey(token) || (adminToken !== undefined && isSame(token, adminToken));
  if (opensSessions && !isOther) return await gateway.openWithKey(token);
  const message = "There is no session of this token: open one with POST /sessions";
  throw new ClientError("unauthorized", message);
}
