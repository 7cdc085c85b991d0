import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import type { ChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import { TemplateError } from "../../packages/chat-template/src/template-error.ts";
import { escapeHalves } from "../text/well-formed.ts";
import { copyReasoning } from "./copy-reasoning.ts";
import { withEmptyMembers } from "./whole-schemas.ts";
import { copiesReasoning, defaultTransformersVersion } from "./transformers-version.ts";

/** The inputs of one rendering. */
export interface TemplateConversation {
  readonly messages: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
  readonly addGenerationPrompt: boolean;
}

/** A chat template with the values that are fixed for a run: its variables and its date. */
export interface BoundTemplate {
  readonly source: string;
  readonly variables: PyDict;
  /** The release of transformers that renders in the same way. */
  readonly transformers: string;
  /**
   * Renders a conversation.
   *
   * @throws TemplateError if the template refuses the conversation.
   */
  render(conversation: TemplateConversation): string;
  /**
   * Returns the template with further variables, which override the earlier ones, and with another date if one is
   * given.
   */
  with(variables: PyDict, now?: Date): BoundTemplate;
}

/**
 * Fixes a template's variables and date, and the release of transformers to render as.
 *
 * @throws UsageError if `transformers` is not a release number.
 */
export function bindTemplate(
  template: ChatTemplate,
  variables: PyDict,
  now: Date,
  transformers = defaultTransformersVersion,
): BoundTemplate {
  const copies = copiesReasoning(transformers);
  return {
    source: template.source,
    variables,
    transformers,
    render({ messages, tools, addGenerationPrompt }) {
      const shown = copies ? copyReasoning(messages) : messages;
      // Calls may have escaped halves of surrogate pairs in their arguments. Templates print the halves themselves.
      const rendered = (given: readonly PyValue[] | null): string =>
        escapeHalves(
          template.render({ messages: shown, tools: given, addGenerationPrompt, variables, now }),
        );
      try {
        return rendered(tools);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        for (const whole of withEmptyMembers(tools)) {
          try {
            return rendered(whole);
          } catch (again) {
            if (!isRefusal(again)) throw again;
          }
        }
        throw error;
      }
    },
    with: (further, then = now) =>
      bindTemplate(template, new Map([...variables, ...further]), then, transformers),
  };
}

/** Returns the template for one conversation. */
export function bindFor(
  { variables, now }: { readonly variables: PyDict | undefined; readonly now: Date | undefined },
  template: BoundTemplate,
): BoundTemplate {
  if (variables === undefined && now === undefined) return template;
  return template.with(variables ?? new Map(), now);
}

/**
 * Renders a conversation. Returns `undefined` if the template refuses it.
 *
 * @throws TemplateError if the rendering exceeds its limits, as it would for any conversation.
 */
export function tryRender(
  template: BoundTemplate,
  conversation: TemplateConversation,
): string | undefined {
  try {
    return template.render(conversation);
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

/** True if a template refused one conversation. It may accept others. */
function isRefusal(error: unknown): boolean {
  return error instanceof TemplateError && error.kind !== "LimitError";
}
