/** A part of a Harmony text: reasoning, a tool call, or normal text. */
export interface HarmonyEvent {
  readonly type: "reasoning" | "normal" | "tool-call";
  readonly content: string;
  /** The block of a tool call, markers included. */
  readonly raw?: string;
}
