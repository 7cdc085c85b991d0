import { invalid, listOf, objectOf, textOf } from "./read-body.ts";

/** What to do with parts of a content list. */
export interface ContentForm {
  /** Types of parts that hold their text in `text`, such as `input_text`. */
  readonly textTypes: readonly string[];
  /** What stands between two parts. */
  readonly separator: string;
  /** Types that say nothing here. */
  readonly passedOver?: readonly string[];
}

/**
 * The text of a message's content: a text, a list of parts, or nothing. A part's other fields are
 * passed over, whatever they are: clients mark caches there, or repeat calls.
 *
 * @throws ClientError for a part that is no text, such as an image.
 */
export function contentText(content: unknown, place: string, form: ContentForm): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return textOf(content, place);
  return listOf(content, place)
    .flatMap((part, index) => {
      const where = `${place}[${index}]`;
      if (typeof part === "string") return [textOf(part, where)];
      const { type, text } = objectOf(part, where);
      if (form.textTypes.includes(String(type))) return [textOf(text, `${where}.text`)];
      if (form.passedOver?.includes(String(type)) === true) return [];
      throw invalid(where, `parts of type ${JSON.stringify(type)} cannot be shown to the policy`);
    })
    .join(form.separator);
}

/** How the parts of system and user messages are put together. */
export const partSeparator = "\n";
