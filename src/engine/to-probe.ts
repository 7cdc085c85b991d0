import type { GenerateRequest } from "./engine.ts";
import type { TokenIds } from "./token-id.ts";

/** Returns a request for one token. */
export function toProbe(promptIds: TokenIds): GenerateRequest {
  return {
    promptIds,
    sampling: {},
    maxNewTokens: 1,
    stopTokenIds: [],
    requestId: "turnwright-probe",
    sessionId: "turnwright-probe",
  };
}
