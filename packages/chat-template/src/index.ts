/**
 * Chat templates of models: Jinja with Python's semantics.
 *
 * @module
 */
export { UsageError } from "../../python-values/src/support/index.ts";
export {
  createChatTemplate,
  type PlainChatTemplate,
  type ChatTemplateOptions,
  type ChatVariables,
} from "./create-chat-template.ts";
export type { TemplateLimits } from "./evaluate/budget.ts";
export { TemplateError, type TemplateErrorKind } from "./template-error.ts";
