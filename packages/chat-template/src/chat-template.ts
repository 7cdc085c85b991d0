import { setEscaping } from "./evaluate/autoescape.ts";
import { UsageError } from "../../python-values/src/support/index.ts";
import type { PyDict, PyValue } from "../../python-values/src/index.ts";
import type { TemplateLimits } from "./evaluate/budget.ts";
import { defaultTemplateLimits, runWithin } from "./evaluate/budget.ts";
import type { Execute, Frame, RenderContext } from "./evaluate/frame.ts";
import { compileRoot } from "./evaluate/frame.ts";
import { parseTemplate } from "./syntax/parser.ts";
import { analyzeStatements, JinjaScope } from "./evaluate/scope.ts";
import { compileStatements } from "./evaluate/statement.ts";
import { toTemplateError } from "./template-error.ts";
import { keepWritten } from "./filters/template-json.ts";
import { strftimeAt, templateGlobals, templateReference } from "./evaluate/template-globals.ts";

/** The input of a chat template. */
interface ChatTemplateInput {
  readonly messages: readonly PyValue[];
  /** `null` if the conversation has no tools. */
  readonly tools: readonly PyValue[] | null;
  readonly addGenerationPrompt: boolean;
  /** Further variables, such as `bos_token` and `enable_thinking`. */
  readonly variables: PyDict;
  /** The time for `strftime_now`, in the machine's time zone. Default: the time of the call. */
  readonly now?: Date;
}

/** A compiled chat template. Rendering changes neither it nor its input. */
export interface ChatTemplate {
  readonly source: string;
  /**
   * Renders a conversation.
   *
   * @throws TemplateError if the template refuses the conversation.
   */
  render(input: ChatTemplateInput): string;
}

/**
 * Compiles a chat template: Jinja with Python's semantics, configured like the transformers library.
 *
 * Integers and floats stay distinct, dictionaries keep their order, `str()` gives Python's text, and operations
 * that fail in Python fail here.
 *
 * **Source:** huggingface/transformers, `src/transformers/utils/chat_template_utils.py`.
 *
 * @param limits - Limits of one rendering that differ from the default.
 * @throws UsageError naming the line if the template is invalid.
 */
export function compileChatTemplate(
  source: string,
  limits: Partial<TemplateLimits> = {},
): ChatTemplate {
  const { enter, run } = compile(source);
  const within = { ...defaultTemplateLimits, ...limits };
  return {
    source,
    render(input) {
      const output = { text: "" };
      try {
        setEscaping(false);
        runWithin(within, () => run(enter(contextOf(input)), output));
      } catch (error) {
        throw toTemplateError(error);
      }
      return output.text;
    },
  };
}

interface CompiledTemplate {
  readonly enter: (context: RenderContext) => Frame;
  readonly run: Execute;
}

function compile(source: string): CompiledTemplate {
  try {
    const statements = parseTemplate(source);
    const scope = new JinjaScope();
    analyzeStatements(scope, statements);
    const run = compileStatements(statements, { scope, soft: false, inLoop: false });
    return { enter: compileRoot(scope), run };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError("Cannot compile the chat template: an expression in it is too long");
  }
}

function contextOf(input: ChatTemplateInput): RenderContext {
  const { messages, tools, addGenerationPrompt, variables, now } = input;
  keepWritten(tools);
  return {
    resolve(name) {
      if (name === "self") return templateReference;
      if (name === "messages") return messages;
      if (name === "tools") return tools;
      if (name === "add_generation_prompt") return addGenerationPrompt;
      const variable = variables.get(name);
      if (variable !== undefined) return variable;
      if (name === "documents") return null;
      if (name === "strftime_now") return strftimeAt(now ?? new Date());
      return templateGlobals.get(name);
    },
  };
}
