import { RolloutError, UsageError } from "../../errors.ts";
import type { Message, ToolDefinition } from "../../message.ts";
import { opensReasoning } from "../../renderer/continues.ts";
import type { EnvironmentDelta, Renderer } from "../../renderer/renderer.ts";
import { TrajectoryRecorder } from "../../trajectory/trajectory-recorder.ts";
import { textTooLong } from "../../tokenizer/text-length.ts";
import { ClientError } from "../client-error.ts";
import type { ClientMessage } from "../conversation.ts";
import { pathTo, recordPath, type PathTurn } from "../tree/record-path.ts";
import type { RootCause, TurnNode } from "../tree/turn-node.ts";
import { measureCallHabits, strictestHabits, type CallHabits } from "./call-habits.ts";
import { findLostParts, type PromptNote } from "./lost-parts.ts";
import {
  emptyHistory,
  toTemplateMessages,
  type KnownTurn,
  type ShownBefore,
  type ShowRules,
} from "./template-messages.ts";
import { divideTurn, formOf } from "./turn-forms.ts";

/** The data of a turn from which the next turn's prompt is built. */
export interface ShownTurn extends PathTurn {
  /** The messages that the policy received since the previous turn. */
  readonly shown: readonly Message[];
  readonly message: KnownTurn["message"];
}

/** The prompt of a turn. */
export interface BuiltPrompt {
  readonly prompt: PathTurn["prompt"];
  /** Its next prompt is the complete prompt for the engine. */
  readonly recorder: TrajectoryRecorder;
  readonly shown: readonly Message[];
  /** True if the prompt ends inside a reasoning block. */
  readonly reasoningOpened: boolean;
  /** Differences between earlier turns and the prompt. */
  readonly notes: readonly PromptNote[];
}

/** The turn cannot be continued, so that the request must start a root. */
interface MustStartRoot {
  readonly cause: RootCause;
}

/** Builds prompts. It keeps sampled ids unchanged and renders only new messages. */
export class PromptBuilder {
  readonly #renderer: Renderer;
  /** The result of the first check of each sequence of roles: true if its delta can be trusted. */
  readonly #roleSequences = new Map<string, boolean>();
  /** The recorded paths to recent turns, least recent first. */
  readonly #paths = new Map<TurnNode<ShownTurn>, TrajectoryRecorder>();
  #keptCount = 0;
  #callHabits: Promise<CallHabits> | undefined;

  constructor(renderer: Renderer) {
    this.#renderer = renderer;
  }

  /**
   * Builds the prompt of a root.
   *
   * @throws ClientError `invalid` if the chat template refuses the conversation, or drops its calls,
   *   their arguments or tool results, `too-long`.
   * @throws RolloutError `internal/tokenizer` if the tokenizer fails.
   */
  async begin(
    messages: readonly ClientMessage[],
    tools: readonly ToolDefinition[],
    sampledIds: SampledIds = new Map(),
  ): Promise<BuiltPrompt> {
    const rules = await this.#rules(messages, sampledIds);
    const shown = toTemplateMessages(messages, emptyHistory, rules);
    const { ids, text } = await this.#render(shown, tools);
    this.#requireShown(shown);
    const recorder = new TrajectoryRecorder();
    recorder.openSegment(ids);
    return {
      prompt: { type: "root", ids },
      recorder,
      shown,
      reasoningOpened: opensReasoning(text),
      notes: findLostParts(text, shown, rules.calls.turnForms),
    };
  }

  /**
   * Builds the prompt of a turn that continues another.
   *
   * @returns the cause of a root if the chat template cannot render these messages after the turn.
   * @throws ClientError `invalid` if untrusted text contains control tokens and these are refused, or
   *   if the chat template drops calls, `too-long`.
   * @throws RolloutError `internal/tokenizer` if the tokenizer fails.
   */
  async continue<Record extends ShownTurn>(
    parent: TurnNode<Record>,
    environment: readonly ClientMessage[],
    tools: readonly ToolDefinition[],
    sampledIds: SampledIds = new Map(),
  ): Promise<BuiltPrompt | MustStartRoot> {
    const path = pathTo(parent);
    const { message, generation } = parent.record;
    const rules = await this.#rules(environment, sampledIds);
    const shown = toTemplateMessages(environment, shownBefore(path), rules);
    const change = {
      // Computed on demand, because most templates do not need the history.
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
      const recorder = this.#take(parent) ?? recordPath(path);
      recorder.appendDelta(delta);
      return {
        prompt: { type: "delta", delta },
        recorder,
        shown,
        reasoningOpened: opensReasoning(delta.text),
        notes: findLostParts(delta.text, shown, rules.calls.turnForms),
      };
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      if (error.code === "internal/delta") return { cause: "delta-unsupported" };
      throw refusal(error);
    }
  }

  /**
   * Keeps the recorded path to a sampled turn for the turn that continues it, which avoids recording it again.
   *
   * @param recorder - The recorder of the turn's prompt. The builder owns it from now on.
   */
  keep(node: TurnNode<ShownTurn>, recorder: TrajectoryRecorder): void {
    recorder.appendTurn(node.record.generation, { isTrained: false });
    this.#paths.set(node, recorder);
    this.#keptCount += recorder.length;
    for (const [oldest, { length }] of this.#paths) {
      if (this.#keptCount <= maxKeptIds || oldest === node) break;
      this.#paths.delete(oldest);
      this.#keptCount -= length;
    }
  }

  /**
   * Removes and returns the kept path to a turn, if any. The next prompt changes the path, so it cannot be used twice.
   */
  #take(node: TurnNode<ShownTurn>): TrajectoryRecorder | undefined {
    const recorder = this.#paths.get(node);
    if (recorder === undefined) return undefined;
    this.#paths.delete(node);
    this.#keptCount -= recorder.length;
    return recorder;
  }

  async #rules(messages: readonly ClientMessage[], sampledIds: SampledIds): Promise<ShowRules> {
    const laterSystem = this.#renderer.card.supports.system;
    // Most conversations start without calls and need no measurement.
    const hasCalls = messages.some(({ role }) => role === "assistant" || role === "tool");
    const habits = hasCalls ? await this.#measuredHabits() : strictestHabits;
    // The history policy `split` requests the prompts that a server renders with the template, without calls if it drops them.
    const isSplit = this.#renderer.rerender !== undefined;
    const calls = isSplit ? { ...habits, dropsCalls: false } : habits;
    return { laterSystem, calls, sampledIds };
  }

  async #measuredHabits(): Promise<CallHabits> {
    this.#callHabits ??= measureCallHabits(this.#renderer);
    try {
      return await this.#callHabits;
    } catch (error) {
      // The measurement can succeed later.
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
   * Requires that the prompt has the conversation's tool results.
   *
   * @throws ClientError `invalid` if the chat template drops the conversation's tool results.
   */
  #requireShown(messages: readonly Message[]): void {
    const { supports } = this.#renderer.card;
    if (supports.tool || messages.every(({ role }) => role !== "tool")) return;
    const message =
      "Cannot show the tool results with the chat template: the prompt does not contain them; " +
      "send them as user messages, or give the model a chat template that prints tool results";
    throw new ClientError("invalid", message);
  }

  /** Divides the turns that the template does not show whole. Sampled turns are whole. */
  async #divided(messages: readonly Message[]): Promise<readonly Message[]> {
    if (!messages.some((message) => "toolCalls" in message)) return messages;
    const { turnForms } = await this.#measuredHabits();
    return messages.flatMap((message): readonly Message[] =>
      message.role === "assistant" ? divideTurn(message, formOf(message, turnForms)) : [message],
    );
  }

  /**
   * Checks a sequence of roles that was not measured with the template: the rendering of the
   * complete conversation must end with the delta.
   */
  async #isTrusted(
    change: Parameters<Renderer["delta"]>[0] extends infer Change
      ? Omit<Change, "lastSampledId">
      : never,
    delta: EnvironmentDelta,
  ): Promise<boolean> {
    const { assistant, environment, tools } = change;
    const roleSequence = (environment as readonly Message[]).map(({ role }) => role).join(" ");
    if (measuredSequence.test(roleSequence)) return true;
    const checked = this.#roleSequences.get(roleSequence);
    if (checked !== undefined) return checked;
    let isRight: boolean;
    try {
      const whole = [...change.history, assistant, ...environment] as readonly Message[];
      const messages = await this.#divided(whole);
      const complete = await this.#renderer.prompt({ messages, tools });
      isRight = complete.text.endsWith(delta.text);
    } catch (error) {
      // A refusal by the template is a result. A failed tokenizer is not, so that it propagates.
      if (!(error instanceof UsageError)) throw error;
      isRight = false;
    }
    // Agents use few sequences. Clearing the cache only costs another check.
    if (this.#roleSequences.size >= maxRoleSequences) this.#roleSequences.clear();
    this.#roleSequences.set(roleSequence, isRight);
    return isRight;
  }
}

/** The policy's ids of sampled calls, by the client's ids. */
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

/** Converts a rendering error to the client's error, unless the tokenizer failed. */
function refusal(error: UsageError | RolloutError): ClientError | RolloutError {
  // Removes the template's path.
  const message = error.message.replace(/ chat template of .*?(?=: |$)/s, " chat template");
  if (error instanceof RolloutError) {
    if (error.code === "internal/tokenizer") return error;
    // Clients shorten the conversation on this kind of error.
    if (error.code === textTooLong) {
      return new ClientError("too-long", `prompt is too long: ${message}`, { cause: error });
    }
  }
  return new ClientError("invalid", message, { cause: error });
}

/** Maximum number of kept ids over all sessions. */
const maxKeptIds = 2_000_000;

/** Maximum number of remembered role sequences. */
const maxRoleSequences = 1000;

/** Sequences of roles that the renderer measures when it loads a template. */
const measuredSequence = /^(?:user|tool(?: tool)*|tool user|system user)$/;
