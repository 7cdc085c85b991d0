import { fileURLToPath } from "node:url";
import { createStorefront } from "../../environments/storefront/storefront.ts";
import {
  createStorefrontExpert,
  toTurnText,
} from "../../environments/storefront/storefront-expert.ts";
import { createStorefrontUser } from "../../environments/storefront/storefront-user.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { World } from "../../src/environment/environment.ts";
import type { Episode } from "../../src/episode/episode.ts";
import { openInProcess, type GatewayInProcess } from "../../src/gateway/create-gateway.ts";
import type { Gateway, GatewayOptions } from "../../src/gateway/gateway.ts";
import type { Message } from "../../src/message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import {
  toPlainJson,
  toPyValue,
  type PlainJson,
  type PyDict,
} from "../../packages/python-values/src/value.ts";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import type { Renderer } from "../../src/renderer/renderer.ts";

/** The folder of the policy that is shipped: its tokenizer and chat template are small. */
export const modelDir = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

export const storefront = createStorefront();

/** A tool in OpenAI's shape, as JSON. */
export interface OpenAiTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Record<string, unknown>;
  };
}

export const openAiTools = storefront.tools.map(
  ({ openai }) => JSON.parse(JSON.stringify(toPlainJson(openai))) as OpenAiTool,
);

/**
 * A customer of the shop, for an agent that is written with any SDK: the agent listens, calls and
 * speaks, and an expert decides the agent's samples.
 */
export class StorefrontEpisode {
  readonly #world: World;
  readonly #signal = new AbortController().signal;
  readonly #messages: Message[] = [];
  readonly #expert = createStorefrontExpert({ seed: 7 });
  #callCount = 0;
  #isDone = false;

  private constructor(world: World) {
    this.#world = world;
  }

  static async open(index: number): Promise<StorefrontEpisode> {
    const task = storefront.task("test", index);
    const user = createStorefrontUser().open(task, { seed: index });
    const { signal } = new AbortController();
    return new StorefrontEpisode(await storefront.open(task, { user, signal }));
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get callCount(): number {
    return this.#callCount;
  }

  /** The customer's first line. */
  async begin(): Promise<string> {
    const content = await this.#world.begin({ signal: this.#signal });
    this.#messages.push({ role: "user", content });
    return content;
  }

  /** The next turn of an agent that knows the solution. */
  nextTurn(): string {
    return toTurnText(this.#expert.act(this.#messages).action);
  }

  /** Performs a call. */
  async call(name: string, given: unknown): Promise<string> {
    const arguments_ = toPyValue(given as PlainJson) as PyDict;
    const step = await this.#world.step(
      { type: "call", name, arguments: arguments_ },
      { signal: this.#signal },
    );
    const id = `call-${this.#callCount++}`;
    const argumentsText = stringifyPythonJson(arguments_, { ensureAscii: false });
    this.#messages.push(
      { role: "assistant", content: "", toolCalls: [{ id, name, argumentsText }] },
      { role: "tool", content: step.observation, toolCallId: id, name },
    );
    return step.observation;
  }

  /** Sends the customer a message. The customer answers unless the task is done. */
  async say(content: string): Promise<string | undefined> {
    const step = await this.#world.step({ type: "say", content }, { signal: this.#signal });
    this.#messages.push(
      { role: "assistant", content },
      { role: "user", content: step.observation },
    );
    this.#isDone = step.done !== undefined;
    return this.#isDone ? undefined : step.observation;
  }

  async score(): Promise<number> {
    const { reward } = await this.#world.score({ signal: this.#signal });
    await this.#world[Symbol.asyncDispose]();
    if (reward === null) throw new Error("a storefront scores every attempt");
    return reward;
  }
}

/** An engine's request, and the listener of its pieces. */
export interface ExpertEngine extends Engine {
  readonly prompts: readonly (readonly number[])[];
}

/** Samples the decided text with a real tokenizer, one id after the other. */
export function createExpertEngine(renderer: Renderer, decide: () => string): ExpertEngine {
  const prompts: number[][] = [];
  return {
    kind: "expert",
    prompts,
    async generate(request, { signal, onTokens } = {}) {
      signal?.throwIfAborted();
      prompts.push([...request.promptIds]);
      const said = await renderer.codec.encodePlain("");
      const text = await renderer.codec.encode(decide());
      const outputIds = [...said, ...text, request.stopTokenIds[0]!];
      const logprobs = outputIds.map((_, place) => -(1 + (place % 31)) / 32);
      for (const [place, id] of outputIds.entries()) {
        onTokens?.({ tokenIds: [id], logprobs: [logprobs[place]!] });
        await new Promise((resolve) => setImmediate(resolve));
      }
      return {
        outputIds,
        logprobs,
        finish: { type: "stop", matched: outputIds.at(-1)! },
        pieces: [
          {
            requestId: request.requestId,
            tokenCount: outputIds.length,
            policyVersion: "v1",
            finish: "stop",
          },
        ],
        discarded: [],
      };
    },
    describe: async () => ({
      kind: "expert",
      logprobConvention: "tempered",
      contextLength: 100_000,
    }),
    close: async () => {},
  };
}

/** A gateway in this process with its inside. */
type OpenedGateway = Pick<GatewayInProcess, "fetch" | "openSession"> & {
  readonly gateway: Gateway;
};

/** A gateway with one open session, and a customer of the shop. */
export interface StorefrontSession extends AsyncDisposable {
  readonly shop: StorefrontEpisode;
  readonly gateway: OpenedGateway;
  readonly engine: ExpertEngine;
  readonly apiKey: string;
  readonly sessionId: string;
  readonly episodes: readonly Episode[];
}

let renderer: Promise<Renderer> | undefined;

/** The renderer of the shipped policy, made once per test file. */
export async function storefrontRenderer(): Promise<Renderer> {
  renderer ??= createRenderer({ modelDir });
  return await renderer;
}

export async function openStorefrontSession(
  index: number,
  options: Partial<GatewayOptions> = {},
): Promise<StorefrontSession> {
  const shop = await StorefrontEpisode.open(index);
  const made = await storefrontRenderer();
  const engine = createExpertEngine(made, () => shop.nextTurn());
  const episodes: Episode[] = [];
  const opened = await openInProcess({
    engine,
    renderer: made,
    onEpisode: async (episode) => void episodes.push(episode),
    onTrouble: (error) => {
      throw error;
    },
    ...options,
  });
  const gateway: OpenedGateway = {
    ...opened,
    openSession: async (wish) => await opened.gateway.openSession(wish),
  };
  const { token: apiKey, sessionId } = await gateway.openSession({ taskId: `shop-${index}` });
  return {
    shop,
    gateway,
    engine,
    apiKey,
    sessionId,
    episodes,
    [Symbol.asyncDispose]: async () => await opened.gateway[Symbol.asyncDispose](),
  };
}
