import { RolloutError, UsageError } from "../errors.ts";
import { isTurnOver, takeTurn } from "../async/take-turn.ts";
import { TemplateError } from "../../packages/chat-template/src/template-error.ts";
import type { ParserSettings } from "../../packages/tool-parsers/src/choose-parser.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { isWhiteSpaceToken } from "../tokenizer/white-space-token.ts";
import { bindFor, type BoundTemplate, type TemplateConversation } from "./bound-template.ts";
import { buildCard, namesOfChoices } from "./capability/build-card.ts";
import type { HistoryPolicy, TemplateProfile } from "./capability/classify-template.ts";
import { classifyTemplate } from "./capability/classify-template.ts";
import type { GuardPolicy } from "./guard/control-token-guard.ts";
import { createControlTokenGuard } from "./guard/control-token-guard.ts";
import { createDeltaEncoder } from "./delta/encode-delta.ts";
import { countRewrites } from "./capability/history-edits.ts";
import { literalPattern } from "./guard/literal-pattern.ts";
import { hiddenTool, type ToolShowing } from "./capability/tool-showing.ts";
import { hiddenMessage } from "./hidden-message.ts";
import { roleOf, toTemplateMessage, toTemplateTools } from "./openai-messages.ts";
import { createPromptEncoder } from "./prompt-encoder.ts";
import { ConversationRefusal, HiddenTool, renderPrompt, withinLimits } from "./render-prompt.ts";
import type { RenderedIds, Renderer, TurnToContinue } from "./renderer.ts";
import { rewritesHistory } from "./capability/rewrite-check.ts";
import { unseal } from "./guard/seal.ts";
import type { ControlLiterals } from "./delta/stop-literals.ts";
import { controlShapes } from "./delta/stop-literals.ts";

/** The parts of a renderer. */
interface RendererParts {
  readonly template: BoundTemplate;
  readonly codec: TokenCodec;
  /** The model's name in messages, such as its folder. */
  readonly source: string;
  /** Ids that end sampling, according to the model's files. */
  readonly endIds: readonly number[];
  readonly historyPolicy: HistoryPolicy;
  readonly guardPolicy: GuardPolicy;
  readonly guardSystem: boolean;
  /** Template variables that the user set. The template is already bound to them. */
  readonly variables?: PyDict;
  /** Parsers to name on the card. Default: those that fit the template. */
  readonly parsers?: ParserSettings;
  /** The requested release of transformers to render as. The template is already bound to it. */
  readonly transformers?: string;
  /** The model's own description of its turn format, for the parsers that use it. */
  readonly responseTemplate?: PyDict;
  /** Ids that end a turn, instead of those that were found. */
  readonly stopIds?: readonly number[];
  /** `full` renders each delta on the complete history, even if a short one suffices. */
  readonly deltaBase?: "full";
}

/**
 * Measures a template and combines it with a tokenizer.
 *
 * @throws UsageError if the history policy is `refuse` and the template rewrites the history.
 */
export async function assembleRenderer(parts: RendererParts): Promise<Renderer> {
  const { codec, source, endIds, historyPolicy } = parts;
  const profile = withDeltaBase(
    withinLimits(source, () =>
      classifyTemplate(parts.template, controlLiterals(codec, endIds), historyPolicy),
    ),
    parts.deltaBase,
  );
  if (historyPolicy === "refuse") requireKeptHistory(profile, source);
  const { template, stops } = profile;
  const ids = await idsOfLiterals(codec, stops.closers);
  const idsOf = (literals: readonly string[]): readonly number[] =>
    literals.flatMap((literal) => ids.get(literal) ?? []);
  const stopTokenIds = [...new Set(parts.stopIds ?? [...endIds, ...idsOf(stops.sampled)])];
  const guard = createControlTokenGuard({
    codec,
    policy: parts.guardPolicy,
    guardSystem: parts.guardSystem,
    surroundings: [template.source, template.variables],
  });
  const encodePrompt = createPromptEncoder(guard, [...ids.keys()]);

  const renderer: Renderer = {
    card: buildCard(profile, {
      source,
      stopIds: stopTokenIds,
      parsers: parts.parsers ?? {},
      variables: parts.variables ?? new Map(),
      vocabulary: codec.addedTokens.map(({ content }) => content),
      ...(parts.responseTemplate !== undefined && { responseTemplate: parts.responseTemplate }),
      overrides: [
        ...namesOfChoices(parts.parsers),
        ...(parts.transformers === undefined ? [] : ["transformers"]),
        ...(parts.stopIds === undefined ? [] : ["stopIds"]),
        ...(parts.deltaBase === undefined ? [] : ["deltaBase"]),
      ],
    }),
    codec,
    stopTokenIds,
    ...(parts.responseTemplate !== undefined && { responseTemplate: parts.responseTemplate }),
    async prompt({ messages, tools, addGenerationPrompt = true, variables, now }) {
      const bound = bindFor({ variables, now }, template);
      const definitions = toTemplateTools(tools);
      // Each step may take milliseconds for a long history, so other work runs in between.
      if (isTurnOver()) await takeTurn();
      const shaped = messages.map(toTemplateMessage);
      const sealed = guard.seal(shaped, definitions);
      if (isTurnOver()) await takeTurn();
      const sealedText = renderPrompt(bound, { ...sealed, addGenerationPrompt }, source);
      const text = await unseal(sealedText, sealed.seal);
      const conversation = { messages: shaped, tools: definitions, addGenerationPrompt };
      // Variables of this conversation may change what the template prints.
      const showing = variables === undefined ? profile.toolShowing : "sometimes";
      requireTools(text, conversation, { template: bound, showing, source });
      if (isTurnOver()) await takeTurn();
      const ids = await encodePrompt(sealedText, sealed.seal);
      if (addGenerationPrompt) requirePrinted(ids, source);
      if (isTurnOver()) await takeTurn();
      requireMessages(text, { template: bound, conversation, source });
      return { ids, text };
    },
    delta: createDeltaEncoder({
      template,
      measured: profile.delta,
      guard,
      closerIds: new Set(ids.values()),
      stopIds: { stops: new Set(stopTokenIds), openers: new Set(idsOf(stops.openers)) },
    }),
  };
  return historyPolicy === "split" ? withRerender(renderer, profile) : renderer;
}

/**
 * Sets the delta base. The complete history is always correct. A short one is correct only if the template allows it.
 */
function withDeltaBase(profile: TemplateProfile, base: "full" | undefined): TemplateProfile {
  if (base === undefined) return profile;
  const { delta } = profile;
  return { ...profile, delta: { ...delta, plan: { ...delta.plan, base, needsTools: true } } };
}

function withRerender(renderer: Renderer, { template }: TemplateProfile): Renderer {
  return {
    ...renderer,
    async rerender(turn) {
      try {
        return await newSegmentPrompt(renderer, template, turn);
      } catch (cause) {
        // In the middle of an episode there is no user input to correct.
        if (!(cause instanceof UsageError || cause instanceof TemplateError)) throw cause;
        throw new RolloutError("internal/delta", messageOf(cause), { cause });
      }
    },
  };
}

/** Returns the prompt of a new segment, or `undefined` if the current segment continues. */
async function newSegmentPrompt(
  renderer: Renderer,
  template: BoundTemplate,
  { history, assistant, environment, tools, variables, now }: TurnToContinue,
): Promise<RenderedIds | undefined> {
  const change = {
    history: history.map(toTemplateMessage),
    assistant: toTemplateMessage(assistant),
    environment: environment.map(toTemplateMessage),
    tools: toTemplateTools(tools),
  };
  const bound = bindFor({ variables, now }, template);
  if (!rewritesHistory(bound, change)) return undefined;
  return await renderer.prompt({
    messages: [...history, assistant, ...environment],
    tools,
    ...(variables !== undefined && { variables }),
    ...(now !== undefined && { now }),
  });
}

function messageOf(cause: UsageError | TemplateError): string {
  if (cause instanceof UsageError) return cause.message;
  return `Cannot render the messages after the sampled turn with this chat template: ${cause.message}`;
}

/**
 * The pattern of control literals: special tokens and tokens that look like them, but not markup such as
 * `</tool_call>`.
 */
function controlLiterals({ addedTokens }: TokenCodec, endIds: readonly number[]): ControlLiterals {
  const candidates = addedTokens.filter(
    ({ content, special }) =>
      !isWhiteSpaceToken(content) && (special || content.match(controlShapes)?.[0] === content),
  );
  const known = addedTokens.filter(({ id }) => endIds.includes(id));
  return {
    pattern: literalPattern(candidates.map(({ content }) => content)),
    known: known.map(({ content }) => content),
  };
}

/** The ids of the literals that the tokenizer encodes as one id. */
async function idsOfLiterals(
  codec: TokenCodec,
  literals: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>();
  for (const literal of literals) {
    const encoded = await codec.encode(literal);
    if (encoded.length === 1 && encoded[0] !== undefined) ids.set(literal, encoded[0]);
  }
  return ids;
}

/** Requires that a prompt has at least one id. */
function requirePrinted(ids: readonly number[], source: string): void {
  if (ids.length > 0) return;
  throw new ConversationRefusal(
    `Cannot render the conversation with the chat template of ${source}: it prints nothing, expected a prompt`,
  );
}

/** Requires that the prompt shows the tools. */
function requireTools(
  text: string,
  conversation: TemplateConversation,
  {
    source,
    ...template
  }: {
    readonly template: BoundTemplate;
    readonly showing: ToolShowing;
    readonly source: string;
  },
): void {
  const missing = withinLimits(source, () => hiddenTool(text, conversation, template));
  if (missing === undefined) return;
  throw new HiddenTool(
    missing,
    `Cannot show the tool ${missing} with the chat template of ${source}: the prompt does not define ` +
      "it; give the model a chat template that prints tools (publishers often keep one for tools " +
      "apart), or choose the agent act or react, which writes the tools into the system message",
  );
}

/** Requires that the prompt shows the messages that the policy answers. */
function requireMessages(
  text: string,
  {
    template,
    conversation,
    source,
  }: {
    readonly template: BoundTemplate;
    readonly conversation: TemplateConversation;
    readonly source: string;
  },
): void {
  const hidden = withinLimits(source, () => hiddenMessage(text, template, conversation));
  if (hidden === undefined) return;
  const role = roleOf(conversation.messages[hidden]!);
  throw new ConversationRefusal(
    `Cannot show message ${hidden + 1} (role "${role}") with the chat template of ${source}: the prompt does not ` +
      "contain its text; send the text with another role, or give the model a chat template that prints it",
  );
}

function requireKeptHistory({ edits, keepThinking }: TemplateProfile, source: string): void {
  if (countRewrites(keepThinking?.edits ?? edits) === 0) return;
  throw new UsageError(
    `Cannot use the chat template of ${source} with the history policy "refuse": it rewrites ` +
      'earlier turns and has no variable that prevents it; use "keep" or "split"',
  );
}
