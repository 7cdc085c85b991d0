import type { PolicyRequest } from "../policies/server-policy.ts";

/** A fault that affects one `/generate` request. */
export type ServerFault =
  /** Answers immediately without sampling. Sends `body` unchanged if it is text, otherwise as JSON. */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /**
   * Resets the connection: immediately (default), when the reply is sampled, or within the reply. Within a streamed
   * reply, resets it after the given number of tokens, by default one.
   */
  | {
      readonly kind: "reset";
      readonly when?: "at-once" | "after-sampling" | "within-reply";
      readonly afterTokens?: number;
    }
  /** Sends no answer until the client disconnects. */
  | { readonly kind: "hang" }
  /** Samples the reply, but sends only a part of its text. */
  | { readonly kind: "truncated-json" }
  /** Sends a web page as the reply. */
  | { readonly kind: "html" }
  /** Sends `null` as the logprob at this position, as for NaN and infinities. */
  | { readonly kind: "null-logprob"; readonly position: number }
  /**
   * Replaces the token after `afterTokens` tokens by a stop id, as the engine does for an id
   * outside the vocabulary.
   */
  | { readonly kind: "nan-happened"; readonly afterTokens: number }
  /** Aborts the request after `tokens` tokens. With a status, the request fails with it. */
  | {
      readonly kind: "abort-after";
      readonly tokens: number;
      readonly status?: number;
      readonly message?: string;
    }
  /** Aborts the request before it runs. */
  | { readonly kind: "abort-in-queue" }
  /** Samples the reply and changes it with a function. Only for servers in this process. */
  | {
      readonly kind: "alter";
      readonly alter: (reply: Record<string, unknown>) => unknown;
    };

/**
 * The faults of requests: a list with one entry for each request, in which `undefined` and `null`
 * mean no fault, or a function of the request and its number (0-based).
 */
export type ServerFaults =
  | readonly (ServerFault | undefined | null)[]
  | ((request: FaultRequest, requestIndex: number) => ServerFault | undefined);

/** The facts on which a fault function can decide. */
export type FaultRequest = Pick<PolicyRequest, "inputIds" | "rid" | "routingKey">;
