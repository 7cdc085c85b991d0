/** What a Harmony text says, piece by piece. */
export interface HarmonyEvent {
  readonly type: "reasoning" | "normal" | "tool-call";
  readonly content: string;
  /** Of a tool call: its block, markers included. */
  readonly raw?: string;
}
