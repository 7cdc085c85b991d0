import { RolloutError, UsageError } from "../../errors.ts";
import type { Message, ToolDefinition } from "../../message.ts";
import { opensReasoning } from "../../renderer/continues.ts";
import type { EnvironmentDelta, Renderer } from "../../renderer/renderer.ts";
import { textTooLong } from "../../tokenizer/text-length.ts";
import { ClientError } from "../client-error.ts";
import type { ClientMessage } from "../conversation.ts";
import { extendBehindTurn, idsBehind, pathTo, type SampledTurn } from "../tree/path-ids.ts";
import type { RootCause, TurnNode } from "../tree/turn-node.ts";
import { measureCallHabits, strictestHabits, type CallHabits } from "./call-habits.ts";
import {
  nothingShown,
  toTemplateMessages,
  type KnownTurn,
  type ShownBefore,
  type ShowRules,
} from "./template-messages.ts";

/** What is kept of a turn, so that another can be put behind it. */
export interface ShownTurn extends SampledTurn {
  /** What the policy was shown since the turn before. */
  readonly shown: readonly Message[];
  readonly message: KnownTurn["message"];
}

/** The prompt of a turn. */
export interface BuiltPrompt {
  readonly prompt: SampledTurn["prompt"];
  /** All ids that the engine is sent. */
  readonly ids: number[];
  readonly shown: readonly Message[];
  /** Whether the prompt ends inside a reasoning block. */
  readonly reasoningOpened: boolean;
}

/** A turn cannot be continued: the request has to begin a root. */
interface MustBegin {
  readonly cause: RootCause;
}

/** Makes prompts: ids that were sampled are put in as they are, and only what is new is rendered. */
export class PromptBuilder {
  readonly #renderer: Renderer;
  /** Whether the delta of a mixture of messages was right when it was first met, by the mixture. */
  readonly #mixtures = new Map<string, boolean>();
  /** What some turns were sampled behind, the least recent first. */
  readonly #prompts = new Map<TurnNode<ShownTurn>, number[]>();
  #keptCount = 0;
  #callHabits: Promise<CallHabits> | undefined;

  constructor(renderer: Renderer) {
    this.#renderer = renderer;
  }

  /**
   * The prompt of a conversation that continues nothing.
   *
   * @throws ClientError `invalid` where the chat template refuses it, `too-long`.
   * @throws RolloutError `internal/tokenizer` where the tokenizer fails.
   */
  async begin(
    messages: readonly ClientMessage[],
    tools: readonly ToolDefinition[],
    sampledIds: SampledIds = new Map(),
  ): Promise<BuiltPrompt> {
    const shown = toTemplateMessages(
      messages,
      nothingShown,
      await this.#rules(messages, sampledIds),
    );
    const { ids: rendered, text } = await this.#render(shown, tools);
    // The tree keeps the one, and the next turn's prompt is made of the other.
    const ids = [...rendered];
    return {
      prompt: { type: "root", ids: rendered },
      ids,
      shown,
      reasoningOpened: opensReasoning(text),
    };
  }

  /**
   * The prompt of a turn behind another: its ids, and what the environment adds.
   *
   * @returns why it has to begin a root, where the chat template cannot say this there.
   * @throws ClientError `invalid` where untrusted text holds control tokens and these are refused, `too-long`.
   * @throws RolloutError `internal/tokenizer` where the tokenizer fails.
   */
  async continue<Record extends ShownTurn>(
    parent: TurnNode<Record>,
    environment: readonly ClientMessage[],
    tools: readonly ToolDefinition[],
    sampledIds: SampledIds = new Map(),
  ): Promise<BuiltPrompt | MustBegin> {
    const path = pathTo(parent);
    const { message, generation } = parent.record;
    const rules = await this.#rules(environment, sampledIds);
    const shown = toTemplateMessages(environment, shownBefore(path), rules);
    const change = {
      // Most templates go on from a turn without what was before it.
      get history() {
        return path.flatMap(({ record }, place) =>
          place === path.length - 1 ? record.shown : [...record.shown, record.message],
        );
      },
      assistant: message,
      environment: shown,
      tools,
    };
    const lastSampledId = generation.outputIds.at(-1);
    try {
      if ((await this.#renderer.rerender?.(change)) !== undefined) {
        return { cause: "rewritten-by-template" };
      }
      const delta = await this.#renderer.delta(Object.assign(change, { lastSampledId }));
      if (!(await this.#isTrusted(change, delta))) return { cause: "delta-unsupported" };
      return {
        prompt: { type: "delta", delta },
        ids: this.#idsBehind(path, delta),
        shown,
        reasoningOpened: opensReasoning(delta.text),
      };
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      if (error.code === "internal/delta") return { cause: "delta-unsupported" };
      throw refusal(error);
    }
  }

  /**
   * Keeps the ids that a turn was sampled behind, for the next one: a gateway has few sessions that ask
   * again and again with long conversations, and those it serves faster so.
   *
   * @param ids - Nobody reads them any more: the next prompt is made of them.
   */
  keep(node: TurnNode<ShownTurn>, ids: number[]): void {
    this.#prompts.set(node, ids);
    this.#keptCount += ids.length;
    for (const [oldest, { length }] of this.#prompts) {
      if (this.#keptCount <= mostKeptIds || oldest === node) break;
      this.#prompts.delete(oldest);
      this.#keptCount -= length;
    }
  }

  #idsBehind(path: readonly TurnNode<ShownTurn>[], delta: EnvironmentDelta): number[] {
    const parent = path.at(-1)!;
    const before = this.#prompts.get(parent);
    if (before === undefined) return idsBehind(path, delta);
    this.#prompts.delete(parent);
    this.#keptCount -= before.length;
    extendBehindTurn(before, parent.record, delta);
    return before;
  }

  async #rules(messages: readonly ClientMessage[], sampledIds: SampledIds): Promise<ShowRules> {
    const laterSystem = this.#renderer.card.supports.system;
    // Most conversations begin without a call, and need no measuring.
    const hasCalls = messages.some(({ role }) => role === "assistant" || role === "tool");
    const calls = hasCalls ? await this.#measuredHabits() : strictestHabits;
    return { laterSystem, calls, sampledIds };
  }

  async #measuredHabits(): Promise<CallHabits> {
    this.#callHabits ??= measureCallHabits(this.#renderer);
    try {
      return await this.#callHabits;
    } catch (error) {
      // A tokenizer that fails now may work later.
      this.#callHabits = undefined;
      throw error;
    }
  }

  async #render(messages: readonly Message[], tools: readonly ToolDefinition[]) {
    try {
      return await this.#renderer.prompt({ messages, tools });
    } catch (error) {
      if (!(error instanceof UsageError) && !(error instanceof RolloutError)) throw error;
      throw refusal(error);
    }
  }

  /**
   * Mixtures of messages that were not measured with the template are held against a rendering of the
   * whole conversation when they are first met: it has to end with the delta.
   */
  async #isTrusted(
    change: Parameters<Renderer["delta"]>[0] extends infer Change
      ? Omit<Change, "lastSampledId">
      : never,
    delta: EnvironmentDelta,
  ): Promise<boolean> {
    const { assistant, environment, tools } = change;
    const mixture = (environment as readonly Message[]).map(({ role }) => role).join(" ");
    if (measuredMixture.test(mixture)) return true;
    const known = this.#mixtures.get(mixture);
    if (known !== undefined) return known;
    let isRight: boolean;
    try {
      const messages = [...change.history, assistant, ...environment];
      const whole = await this.#renderer.prompt({ messages, tools });
      isRight = whole.text.endsWith(delta.text);
    } catch (error) {
      // The template's own refusal is an answer; that a text cannot be encoded now says nothing of the mixture.
      if (!(error instanceof UsageError)) throw error;
      isRight = false;
    }
    // Agents have few habits; whoever has many is measured again.
    if (this.#mixtures.size >= keptMixtures) this.#mixtures.clear();
    this.#mixtures.set(mixture, isRight);
    return isRight;
  }
}

/** Ids under which the policy knows calls that it made, by the clients' ids. */
type SampledIds = ReadonlyMap<string, string>;

function shownBefore(path: readonly TurnNode<ShownTurn>[]): ShownBefore {
  const turns = path.map(({ turn: sent, record: { message } }) => ({ sent, message }));
  const callIds = (): readonly string[] =>
    path
      .flatMap(({ record }) => [...record.shown, record.message])
      .flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
      .map(({ id }) => id);
  return { turns, callIds };
}

/** What a client is told of a conversation that cannot be rendered; a failure of ours where it is none of its. */
function refusal(error: UsageError | RolloutError): ClientError | RolloutError {
  // The client does not learn where the template lies.
  const message = error.message.replace(/ chat template of .*?(?=: |$)/s, " chat template");
  if (error instanceof RolloutError) {
    if (error.code === "internal/tokenizer") return error;
    // Clients shorten the conversation and go on where they are told that it is too long.
    if (error.code === textTooLong) {
      return new ClientError("too-long", `prompt is too long: ${message}`, { cause: error });
    }
  }
  return new ClientError("invalid", message, { cause: error });
}

/** So many ids of prompts are kept, over all sessions. */
const mostKeptIds = 2_000_000;

/** So many mixtures are kept. */
const keptMixtures = 1000;

/** What the renderer measures itself when a template is loaded. */
const measuredMixture = /^(?:user|tool(?: tool)*|tool user|system user)$/;
