import { invalid, objectOf, optionalText, textOf, type Json } from "./read-body.ts";

/** The use that is made of a part of a message. */
export type PartUse =
  /** Its member `text` is said. */
  | "text"
  /** Its member `refusal` is said. */
  | "refusal"
  /** It was thought, and not said. */
  | "thought"
  /** Its text is encrypted: there is nothing in it that a policy could read. */
  | "sealed"
  /** It is no text, such as an image. */
  | "refused";

/** The parts that a message may have. A type that is not among them is refused too. */
export interface ContentForm {
  readonly parts: Readonly<Record<string, PartUse>>;
  /** Text between two parts. */
  readonly separator: string;
}

/** The content of a message. */
interface ReadContent {
  readonly said: string;
  readonly thought: string;
}

/**
 * Reads a message's content: a text, a list of parts, or nothing. A part's other members are passed over,
 * because clients mark caches there, or repeat calls.
 *
 * @throws ClientError for a part that is no text, such as an image.
 */
export function readContent(content: unknown, place: string, form: ContentForm): ReadContent {
  if (content === undefined || content === null) return { said: "", thought: "" };
  if (typeof content === "string") return { said: textOf(content, place), thought: "" };
  if (!Array.isArray(content)) throw invalid(place, "expected a text or a list of parts");
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

/** Reads what the content of a message says. See `readContent()`. */
export function contentText(content: unknown, place: string, form: ContentForm): string {
  return readContent(content, place, form).said;
}

/** The refusal of something that a policy cannot be shown; `what` is the word of the protocol for it. */
export function unshowable({ type }: Json, place: string, what: "part" | "block") {
  const named = `a ${what} of type ${JSON.stringify(type)} cannot be shown to the policy`;
  return invalid(place, `${named}; send what it says as text`);
}

function useOf({ type }: Json, { parts }: ContentForm): PartUse {
  return typeof type === "string" && Object.hasOwn(parts, type) ? parts[type]! : "refused";
}

/** Clients spell thoughts in several ways: as a text in a member of the part's name, or as a list of texts. */
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
