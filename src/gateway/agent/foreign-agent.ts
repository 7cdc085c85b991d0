import type { Task } from "../../task.ts";

/** A tool of the environment, for an agent that calls it itself. */
export interface ForeignTool {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /**
   * Calls it. What it answers is for the policy to read; a mistake of the policy's is an answer. Calls
   * are performed one after the other, however many are made at once.
   */
  readonly execute: (given: unknown) => Promise<string>;
}

/** What an agent that was written elsewhere is given for one attempt at a task. */
export interface ForeignRun {
  readonly task: Task;
  /** What the environment wants the policy to go by; a system message as a rule. */
  readonly policyText: string;
  /** The user's first line. */
  readonly firstUserText: string;
  readonly tools: readonly ForeignTool[];
  /** Says something to the user; `undefined` where the conversation is over. */
  readonly say: (text: string) => Promise<string | undefined>;
  /** Where the policy is: with `/v1` behind it for OpenAI's clients, as it is for Anthropic's. */
  readonly baseUrl: string;
  /** The key by which the attempt is known. */
  readonly apiKey: string;
  /** Reaches `baseUrl` without a socket: to be given to the client. */
  readonly fetch: typeof globalThis.fetch;
  /** Aborted when the attempt is over. */
  readonly signal: AbortSignal;
}

/**
 * An agent of any making: what the module of `--agent ./my-agent.js` exports. It returns when it has
 * done what it can; what it throws is its own failure, and never a reward of 0.
 */
export interface ForeignAgent {
  run(run: ForeignRun): Promise<unknown>;
  /** Whether `baseUrl` is to be an address that other processes reach. Default: it leads nowhere. */
  readonly needsAddress?: boolean;
}
