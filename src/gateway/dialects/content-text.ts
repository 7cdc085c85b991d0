import { invalid, objectOf, optionalText, textOf, type Json } from "./read-body.ts";

/** The treatment of one part of a message. */
export type PartUse =
  /** The member `text` is the part's text. */
  | "text"
  /** The member `refusal` is the part's text. */
  | "refusal"
  /** The part is reasoning. */
  | "thought"
  /** The part is encrypted and is skipped. */
  | "sealed"
  /** The part is not text, such as an image, and the request is refused. */
  | "refused";

/** The parts that a message may have. Parts of other types are refused. */
export interface ContentForm {
  readonly parts: Readonly<Record<string, PartUse>>;
  /** Text between two parts. */
  readonly separator: string;
}

/** The text and the reasoning of a message. */
interface ReadContent {
  readonly said: string;
  readonly thought: string;
}

/**
 * Reads a message's content: text, a list of parts, or `null` for nothing. Skips other members of a
 * part, because clients mark caches there or repeat calls.
 *
 * @throws ClientError if the content is missing, or if a part is not text, such as an image.
 */
export function readContent(content: unknown, place: string, form: ContentForm): ReadContent {
  if (content === null) return { said: "", thought: "" };
  if (typeof content === "string") return { said: textOf(content, place), thought: "" };
  if (!Array.isArray(content)) {
    const found = content === undefined ? "it is missing; " : "";
    throw invalid(place, `${found}expected text or a list of parts`);
  }
  const said: string[] = [];
  const thought: string[] = [];
  content.forEach((value: unknown, index) => {
    const where = `${place}[${index}]`;
    if (typeof value === "string") {
      said.push(textOf(value, where));
      return;
    }
    const part = objectOf(value, where);
    const use = useOf(part, form);
    switch (use) {
      case "text":
        said.push(textOf(part["text"], `${where}.text`));
        return;
      case "refusal":
        said.push(textOf(part["refusal"], `${where}.refusal`));
        return;
      case "thought":
        thought.push(thoughtOf(part, where));
        return;
      case "sealed":
        return;
      case "refused":
        throw unshowable(part, where, "part");
      default:
        return use satisfies never;
    }
  });
  return { said: said.join(form.separator), thought: thought.join("") };
}

/** Returns the text of a message's content. See `readContent()`. */
export function contentText(content: unknown, place: string, form: ContentForm): string {
  return readContent(content, place, form).said;
}

/**
 * Returns the error for a part that the policy cannot be shown. `what` is the protocol's word for
 * it.
 */
export function unshowable({ type }: Json, place: string, what: "part" | "block") {
  const named = `a ${what} of type ${JSON.stringify(type)} cannot be shown to the policy`;
  return invalid(place, `${named}; send its content as text`);
}

function useOf({ type }: Json, { parts }: ContentForm): PartUse {
  return typeof type === "string" && Object.hasOwn(parts, type) ? parts[type]! : "refused";
}

/**
 * Returns the reasoning of a part. Clients send text in a member of the part's name, or a list of
 * texts.
 */
function thoughtOf(part: Json, place: string): string {
  for (const name of ["thinking", "reasoning", "summary"]) {
    const { [name]: value } = part;
    if (Array.isArray(value)) return contentText(value, `${place}.${name}`, innerForm);
    if (typeof value === "string") return value;
  }
  return optionalText(part["text"], `${place}.text`) ?? "";
}

const innerForm: ContentForm = {
  parts: { text: "text", summary_text: "text", reasoning_text: "text" },
  separator: "",
};

/** Text between the parts of system and user messages. */
export const partSeparator = "\n";
