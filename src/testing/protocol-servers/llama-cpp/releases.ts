/** A release of llama.cpp's server, by month, that a test server can imitate. */
export type LlamaCppRelease = "2026-08" | "2026-10";

/** The differences between releases that clients can observe. */
interface ReleaseTraits {
  /**
   * True if a text that ends inside a character is an error, because the reply is parsed as a chat
   * message.
   */
  readonly refusesCutText: boolean;
  /** `known` if the release applies a grammar for the text, `unknown` if it ignores it. */
  readonly textGrammar: "known" | "unknown";
  /**
   * True if an invalid JSON body is the client's fault (HTTP 400), false if it is the server's
   * (500).
   */
  readonly blamesClient: boolean;
}

/**
 * The behaviour of each release. 2026-08: from its sources. 2026-10: recorded from a running
 * server.
 */
export const LLAMA_CPP_RELEASES: Readonly<Record<LlamaCppRelease, ReleaseTraits>> = {
  "2026-08": { refusesCutText: true, textGrammar: "known", blamesClient: false },
  "2026-10": { refusesCutText: false, textGrammar: "unknown", blamesClient: true },
};
