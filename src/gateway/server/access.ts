import { createHash, timingSafeEqual } from "node:crypto";
import { isLocalAddress } from "../../http/local-host.ts";
import { ClientError } from "../client-error.ts";
import type { Gateway } from "../gateway.ts";
import { hashToken, isOwnerKey } from "../session/session-keys.ts";
import type { GatewaySession } from "../session/session.ts";

/** The rules that decide which key permits which action. */
export interface AccessRules {
  /**
   * The key that permits every action except sampling. Absent: every program that reaches the
   * gateway may open sessions, and only a session's owner may score, show or end it.
   */
  readonly adminToken?: string;
  /** True if an unknown key opens a new session. */
  readonly opensSessions: boolean;
  /**
   * True if requests must be addressed to this machine. The check stops web pages that reach a
   * local port through a host name of their own (DNS rebinding).
   */
  readonly checksHost: boolean;
}

/**
 * Refuses requests that a web page on another host may have caused.
 *
 * @throws ClientError `forbidden` if the request's `Host` or `Origin` is not this machine.
 */
export function requireLocal({ headers }: Request, { checksHost }: AccessRules): void {
  if (!checksHost) return;
  const host = headers.get("host");
  if (host !== null && !isLocalAddress(`http://${host}`)) {
    throw new ClientError("forbidden", `Cannot answer a request to ${host}: use 127.0.0.1`);
  }
  const origin = headers.get("origin");
  if (origin !== null && !isLocalAddress(origin)) {
    throw new ClientError("forbidden", "Cannot answer a request of a web page on another host");
  }
}

/**
 * Accepts a request with the admin token. If the gateway has no admin token, accepts every request that does not carry
 * an agent's key.
 *
 * @throws ClientError `unauthorized` for any other request.
 */
export function requireAdmin({ headers }: Request, rules: AccessRules, { store }: Gateway): void {
  const { adminToken } = rules;
  if (adminToken === undefined) {
    if (!keysOf(headers).some((key) => store.isSamplingKey(key))) return;
    throw new ClientError("unauthorized", "An agent's key permits sampling only");
  }
  if (isAdmin(headers, rules)) return;
  throw new ClientError("unauthorized", "The admin token is missing or wrong");
}

/**
 * Accepts a request with the admin token or the session's `ownerToken`, even after the session's end. The error is the
 * same for an unknown session, so that a stranger cannot probe for session ids.
 *
 * @throws ClientError `unauthorized` for any other request.
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

/** Compares two secrets in constant time. */
export function isSame(given: string, wanted: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given), hash(wanted));
}

/** Returns the token of an `Authorization: Bearer` header. */
export function bearerOf(headers: Headers): string | undefined {
  return /^Bearer\s+(.+)$/i.exec(headers.get("authorization") ?? "")?.[1]?.trim();
}

/** Returns the keys in a request's headers. */
function keysOf(headers: Headers): readonly string[] {
  const keys = [bearerOf(headers), headers.get("x-api-key"), headers.get("x-turnwright-session")];
  return keys.filter((key) => key !== undefined && key !== null && key !== "") as string[];
}

/**
 * Finds a request's session by the token in its URL, its API key or the `x-turnwright-session`
 * header, in this order.
 *
 * @param inUrl - The token in the URL, if any.
 * @throws ClientError `unauthorized` if no session has the key, `finished` if the session is over.
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
  const session = gateway.store.byToken(token);
  if (session !== undefined) return session;
  const isOtherKey = isOwnerKey(token) || (adminToken !== undefined && isSame(token, adminToken));
  if (opensSessions && !isOtherKey) return await gateway.openWithKey(token);
  const message = "No session has this token: open one with POST /sessions";
  throw new ClientError("unauthorized", message);
}
