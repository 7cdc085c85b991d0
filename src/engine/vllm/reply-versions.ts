import type { PieceReply } from "../http/piece-reply.ts";
import type { PieceExchange } from "../http/sampling-protocol.ts";

/** True for a stream that ended without a finish reason. Such a stream names no versions. */
export function isCutStream(
  reply: PieceReply,
  { stream }: PieceExchange,
): reply is PieceReply & { readonly type: "interrupted" } {
  return stream !== undefined && reply.type === "interrupted" && !namesVersions(reply);
}

/** Returns the last version that a reply names. */
export function lastVersion(reply: PieceReply): string {
  const hasPiece = reply.type === "finished" || reply.type === "interrupted";
  return (hasPiece ? reply.piece.versions.at(-1)?.policyVersion : undefined) ?? "";
}

/** True if a reply names the version of its tokens. */
export function namesVersions(reply: PieceReply): boolean {
  if (reply.type !== "finished" && reply.type !== "interrupted") return false;
  return reply.piece.versions.some(({ policyVersion }) => policyVersion !== "");
}

/** Returns the reply with all of its tokens assigned to one version. */
export function withVersion<
  Reply extends PieceReply & { readonly type: "finished" | "interrupted" },
>(reply: Reply, policyVersion: string): Reply {
  const { piece } = reply;
  const versions = [{ tokenCount: piece.ids.length, policyVersion }];
  return { ...reply, piece: { ...piece, versions } };
}
