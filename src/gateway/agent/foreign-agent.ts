import type { Task } from "../../task.ts";

/** A tool of the environment that an agent calls directly. */
export interface ForeignTool {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /**
   * Calls the tool and resolves to the observation for the policy. A mistake of the policy is an
   * observation too. Concurrent calls run one after another.
   */
  readonly execute: (given: unknown) => Promise<string>;
}

/** The inputs of an external agent for one attempt at a task. */
export interface ForeignRun {
  readonly task: Task;
  /** The environment's instructions for the policy, usually sent as the system message. */
  readonly policyText: string;
  /** The user's first message. */
  readonly firstUserText: string;
  readonly tools: readonly ForeignTool[];
  /**
   * Sends a message to the user and resolves to the answer, or to `undefined` if the conversation
   * is over.
   */
  readonly say: (text: string) => Promise<string | undefined>;
  /** The policy's base URL. Anthropic's clients use it unchanged, OpenAI's with `/v1` appended. */
  readonly baseUrl: string;
  /** The API key of the attempt. Requests with this key count as the attempt's. */
  readonly apiKey: string;
  /** Reaches `baseUrl` without a socket. Pass it to the client. */
  readonly fetch: typeof globalThis.fetch;
  /** Aborted when the attempt is over. */
  readonly signal: AbortSignal;
}

/**
 * An external agent: the export of the module of `--agent ./my-agent.js`. `run()` returns when the
 * agent has finished. If it throws, the attempt fails and gets no reward.
 */
export interface ForeignAgent {
  run(run: ForeignRun): Promise<unknown>;
  /**
   * True if the agent runs in another process, which must be able to reach `baseUrl`. Default false: only `fetch`
   * reaches it.
   */
  readonly needsAddress?: boolean;
}
