import { invalid, listOf, objectOf, optionalText, textOf, type Json } from "./read-body.ts";

/** The treatment of one part of a message. */
export type PartUse =
  /** The member `text` is the part's text. */
  | "text"
  /** The member `refusal` is the part's text. */
  | "refusal"
  /** The part is a document of Messages. A document that is not text is refused. */
  | "document"
  /** The part is a search result of Messages. */
  | "search-result"
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
      case "refusal":
      case "document":
      case "search-result":
        said.push(partText(part, use, { place: where, what: "part" }));
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

/** The place of a part in the request, and the protocol's word for parts. */
interface PartPlace {
  readonly place: string;
  readonly what: "part" | "block";
}

/** Returns the text of a block in a user message. */
export function blockText(block: Json, place: string, form: ContentForm): string {
  const use = useOf(block, form);
  if (use === "thought" || use === "sealed" || use === "refused") {
    throw unshowable(block, place, "block");
  }
  return partText(block, use, { place, what: "block" });
}

function partText(
  part: Json,
  use: Exclude<PartUse, "thought" | "sealed" | "refused">,
  at: PartPlace,
): string {
  switch (use) {
    case "text":
    case "refusal":
      return textOf(part[use], `${at.place}.${use}`);
    case "document":
      return documentText(part, at);
    case "search-result":
      return searchResultText(part, at.place);
    default:
      return use satisfies never;
  }
}

/**
 * Returns the title, the context and the content of a document, in lines.
 *
 * **Source:** anthropics/anthropic-sdk-typescript src/resources/messages/messages.ts (`DocumentBlockParam`).
 *
 * @throws ClientError if the document is a file or an address.
 */
function documentText(part: Json, { place, what }: PartPlace): string {
  const { type, data, content } = objectOf(part["source"], `${place}.source`);
  if (type !== "text" && type !== "content") throw unshowable(part, place, what);
  return inLines([
    optionalText(part["title"], `${place}.title`),
    optionalText(part["context"], `${place}.context`),
    type === "text"
      ? textOf(data, `${place}.source.data`)
      : contentText(content, `${place}.source.content`, quotedForm),
  ]);
}

/**
 * Returns the title, the source and the content of a search result, in lines.
 *
 * **Source:** anthropics/anthropic-sdk-typescript src/resources/messages/messages.ts (`SearchResultBlockParam`).
 */
function searchResultText({ title, source, content }: Json, place: string): string {
  return inLines([
    textOf(title, `${place}.title`),
    textOf(source, `${place}.source`),
    contentText(listOf(content, `${place}.content`), `${place}.content`, quotedForm),
  ]);
}

function inLines(texts: readonly (string | undefined)[]): string {
  return texts.filter(Boolean).join("\n");
}

/** The content of a document or search result: text only. */
const quotedForm: ContentForm = { parts: { text: "text" }, separator: "\n" };

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
