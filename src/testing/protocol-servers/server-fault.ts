import type { PolicyRequest } from "../policies/server-policy.ts";

/** Something that goes wrong with one `/generate` request. */
export type ServerFault =
  /**
   * Answers at once and samples nothing. Sends `body` as it is if it is text, otherwise as JSON.
   */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /**
   * The connection is reset: at once (default), when the reply was sampled, or within the reply; within
   * a streamed one, when so many tokens were sent, by default one.
   */
  | {
      readonly kind: "reset";
      readonly when?: "at-once" | "after-sampling" | "within-reply";
      readonly afterTokens?: number;
    }
  /** Sends no answer until the client disconnects. */
  | { readonly kind: "hang" }
  /** The reply is sampled, and its text ends in the middle. */
  | { readonly kind: "truncated-json" }
  /** The reply is a web page. */
  | { readonly kind: "html" }
  /** The logprob at this position is `null`, as NaN and infinities are. */
  | { readonly kind: "null-logprob"; readonly position: number }
  /** The token after so many is out of the vocabulary: replaced by a stop id, as the engine does. */
  | { readonly kind: "nan-happened"; readonly afterTokens: number }
  /** The engine aborts the request after so many tokens; with a status, it fails with that. */
  | {
      readonly kind: "abort-after";
      readonly tokens: number;
      readonly status?: number;
      readonly message?: string;
    }
  /** The request is aborted before it runs. */
  | { readonly kind: "abort-in-queue" }
  /** The reply is sampled, then changed. In process only. */
  | {
      readonly kind: "alter";
      readonly alter: (reply: Record<string, unknown>) => unknown;
    };

/**
 * Which requests fail how: a list, taken one for each request with `undefined` and `null` for
 * requests that go well, or a function of the request and its number (0-based).
 */
export type ServerFaults =
  | readonly (ServerFault | undefined | null)[]
  | ((request: FaultRequest, requestIndex: number) => ServerFault | undefined);

/** The facts on which a fault function can decide. */
export type FaultRequest = Pick<PolicyRequest, "inputIds" | "rid" | "routingKey">;
