/** A release of llama.cpp's server, by its month, whose behaviour a test server can have. */
export type LlamaCppRelease = "2026-08" | "2026-10";

/** In what releases differ, as far as clients meet it. */
interface ReleaseTraits {
  /** Whether a text that ends within a character, as a chat message is parsed from it, is an error. */
  readonly refusesCutText: boolean;
  /** What becomes of a grammar for the text: understood, or passed over. */
  readonly textGrammar: "known" | "unknown";
  /** Whether a body that is no JSON is the client's fault (HTTP 400) or the server's (500). */
  readonly blamesClient: boolean;
}

/** 2026-08: as its sources say. 2026-10: as recorded from a running one. */
export const LLAMA_CPP_RELEASES: Readonly<Record<LlamaCppRelease, ReleaseTraits>> = {
  "2026-08": { refusesCutText: true, textGrammar: "known", blamesClient: false },
  "2026-10": { refusesCutText: false, textGrammar: "unknown", blamesClient: true },
};
