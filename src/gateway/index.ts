/**
 * The gateway, which serves agents that exist already and records what they sample.
 *
 * @module
 */
export { createCommandAgent } from "./agent/command-agent.ts";
export { createForeignPlayer, type ForeignPlayer } from "./agent/foreign-player.ts";
export {
  createGateway,
  inProcessUrl,
  type GatewayInProcess,
  type GatewayInProcessOptions,
} from "./create-gateway.ts";
export type { GatewayCounts } from "../episode/gateway-counters.ts";
export type { SessionColumns } from "./answer-turn.ts";
export type { GatewayOptions, OpenedSession, ScoredSession, SessionScorer } from "./gateway.ts";
export type { MintId } from "./mint-id.ts";
export type { AccessRules } from "./server/access.ts";
export type { SessionLimits } from "./session/session-limits.ts";
export type { SessionRequest } from "./session/session-store.ts";
export type { SessionIdentity, SessionReward } from "./session/session.ts";
export type { RowChoice } from "./tree/collect-rows.ts";
export type { Strictness } from "./tree/match-turn.ts";
export type { PlacementNote, RootCause } from "./tree/turn-node.ts";
export type { PromptNote } from "./turn/lost-parts.ts";
