import { RolloutError } from "../../errors.ts";
import { takeTurn } from "../../async/take-turn.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { someString } from "../python-strings.ts";

/**
 * Marks for control tokens in untrusted text: four private-use characters that occur nowhere in a
 * conversation. Marked text can be found again after the rendering, even if the template trims,
 * quotes or changes the case of the text in between.
 */
export interface Seal {
  /** The mark before a complete literal (the text of a control token). */
  readonly open: string;
  /**
   * The mark before text that could become a literal: together with the template's adjacent text,
   * or by normalisation.
   */
  readonly openEdge: string;
  /** The mark between the characters of a literal, so that no search finds the literal. */
  readonly breaker: string;
  readonly close: string;
}

/** A piece of rendered text. */
export interface SealedPiece {
  readonly text: string;
  /** True for untrusted text, which must be encoded without added tokens: control tokens in it stay text. */
  readonly plain: boolean;
}

const privateUse = /[\uE000-\uF8FF]|\\u[eEfF][0-9a-fA-F]{3}/g;
const firstPrivateUse = 0xe000;
const lastPrivateUse = 0xf8ff;

/**
 * Chooses marks that do not occur in the values, neither directly nor as JSON escapes. The same values give the
 * same marks.
 *
 * @throws RolloutError `internal/guard` if the values use every private-use character.
 */
export function chooseSeal(values: readonly PyValue[]): Seal {
  const used = new Set<number>();
  someString(values, (text) => {
    for (const [found] of text.matchAll(privateUse)) {
      used.add(found.length === 1 ? found.charCodeAt(0) : Number.parseInt(found.slice(2), 16));
    }
    return false;
  });
  const free: string[] = [];
  for (let unit = firstPrivateUse; unit <= lastPrivateUse && free.length < 4; unit++) {
    if (!used.has(unit)) free.push(String.fromCharCode(unit));
  }
  const [open, openEdge, breaker, close] = free;
  if (
    open === undefined ||
    openEdge === undefined ||
    breaker === undefined ||
    close === undefined
  ) {
    throw new RolloutError(
      "internal/guard",
      "Cannot mark the control tokens in untrusted text: every private-use character is in use",
    );
  }
  return { open, openEdge, breaker, close };
}

/** Returns a complete literal with marks. */
export function sealLiteral(literal: string, { open, breaker, close }: Seal): string {
  return open + [...literal].join(breaker) + close;
}

/** Returns text that could become part of a literal, with marks. */
export function sealEdge(edge: string, { openEdge, breaker, close }: Seal): string {
  return edge === "" ? "" : openEdge + [...edge].join(breaker) + close;
}

/**
 * Returns text that the tokenizer could normalise to a literal, between marks. Its characters stay adjacent: the text
 * contains no literal that a search could find.
 */
export function sealDisguise(text: string, { openEdge, close }: Seal): string {
  return text === "" ? "" : openEdge + text + close;
}

/**
 * Returns the text without marks, as a template would have rendered it from the original.
 *
 * @throws RolloutError `internal/guard` like `splitSealed()`.
 */
export async function unseal(text: string, seal: Seal | undefined): Promise<string> {
  if (seal === undefined) return text;
  return (await removeMarks(unescapeMarks(text, seal), seal)).flat;
}

/**
 * Splits rendered text into pieces with and without added tokens. An edge stays ordinary text unless it became part
 * of a literal. Ordinary text between two literals is joined to them if it contains no literal itself, so that the
 * tokenizer sees few cuts. A text may have hundreds of thousands of marks, so other work runs in between.
 *
 * @param literals - Matches every literal that the tokenizer would encode as one id.
 * @param options - `areEdgesPlain`: true if all edges are ordinary text. Default false.
 * @throws RolloutError `internal/guard` if the template split a marked literal.
 */
export async function splitSealed(
  text: string,
  seal: Seal,
  literals: RegExp,
  { areEdgesPlain = false }: { readonly areEdgesPlain?: boolean } = {},
): Promise<SealedPiece[]> {
  const { flat, spans } = await removeMarks(unescapeMarks(text, seal), seal);
  const forged = spans.some(({ edge }) => edge) ? await findLiterals(flat, literals) : [];
  await takeTurn();
  let next = 0;
  const plainSpans = spans.filter(({ edge, start, end }) => {
    if (!edge || areEdgesPlain) return true;
    while ((forged[next]?.end ?? Infinity) <= start) next += 1;
    return (forged[next]?.start ?? Infinity) < end;
  });
  const pieces: SealedPiece[] = [];
  let from = 0;
  for (const { start, end } of plainSpans) {
    pieces.push({ text: flat.slice(from, start), plain: false });
    pieces.push({ text: flat.slice(start, end), plain: true });
    from = end;
  }
  pieces.push({ text: flat.slice(from), plain: false });
  return await joinPlain(pieces, literals);
}

/** The number of marks or pieces that are processed in one turn on the event loop: about a millisecond's work. */
const marksPerTurn = 2_000;

async function findLiterals(text: string, literals: RegExp) {
  const found: { readonly start: number; readonly end: number }[] = [];
  for (const { 0: literal, index } of text.matchAll(literals)) {
    if (found.length % marksPerTurn === 0) await takeTurn();
    found.push({ start: index, end: index + literal.length });
  }
  return found;
}

interface MarkedSpan {
  readonly start: number;
  readonly end: number;
  readonly edge: boolean;
}

/**
 * Removes the marks in one pass. Only breakers may stand between an opening mark and its close, and no breaker
 * outside: otherwise the template has split the text.
 */
async function removeMarks(
  text: string,
  seal: Seal,
): Promise<{ flat: string; spans: readonly MarkedSpan[] }> {
  const { open, openEdge, breaker, close } = seal;
  const marked = new RegExp(`[${open}${openEdge}][^${open}${openEdge}${close}]*${close}`, "gu");
  const spans: { start: number; end: number; edge: boolean }[] = [];
  const pieces: string[] = [];
  /** The texts between marks, by their sealed form; few differ, however often they occur. */
  const contents = new Map<string, string>();
  let length = 0;
  const take = (piece: string): void => {
    pieces.push(piece);
    length += piece.length;
  };
  let from = 0;
  let count = 0;
  for (const { 0: whole, index } of text.matchAll(marked)) {
    if (count++ % marksPerTurn === 0) await takeTurn();
    if (index > from) take(withoutMarks(text.slice(from, index), seal));
    const start = length;
    let content = contents.get(whole);
    if (content === undefined) {
      content = whole.slice(1, -1).replaceAll(breaker, "");
      contents.set(whole, content);
    }
    take(content);
    const edge = whole.startsWith(openEdge);
    const last = spans.at(-1);
    if (last !== undefined && !edge && !last.edge && last.end === start) last.end = length;
    else spans.push({ start, end: length, edge });
    from = index + whole.length;
  }
  take(withoutMarks(text.slice(from), seal));
  return { flat: pieces.join(""), spans };
}

/**
 * Requires that the text contains no mark.
 *
 * @throws RolloutError `internal/guard` if the text contains a mark.
 */
function withoutMarks(text: string, { open, openEdge, breaker, close }: Seal): string {
  if ([open, openEdge, breaker, close].some((mark) => text.includes(mark))) throw cutText();
  return text;
}

function cutText(): RolloutError {
  return new RolloutError(
    "internal/guard",
    "Cannot find the control tokens of untrusted text again: the chat template cuts the text " +
      'in pieces; choose the guard policy "reject" or "hf-parity"',
  );
}

async function joinPlain(pieces: readonly SealedPiece[], literals: RegExp): Promise<SealedPiece[]> {
  const joined: { text: string; plain: boolean }[] = [];
  for (const [place, { text, plain }] of pieces.entries()) {
    if (place % marksPerTurn === 0) await takeTurn();
    if (text === "") continue;
    const last = joined.at(-1);
    const canBePlain = plain || text.search(literals) < 0;
    if (last !== undefined && last.plain && canBePlain) last.text += text;
    else joined.push({ text, plain: plain || (canBePlain && pieces.length > 1) });
  }
  return joined;
}

/** Replaces JSON escapes of the marks, which a template that writes ASCII JSON produces. */
function unescapeMarks(text: string, { open, openEdge, breaker, close }: Seal): string {
  if (!text.includes("\\u")) return text;
  return [open, openEdge, breaker, close].reduce(
    (result, mark) => result.replaceAll(`\\u${mark.charCodeAt(0).toString(16)}`, mark),
    text,
  );
}

function anyMark({ open, openEdge, breaker, close }: Seal): RegExp {
  return new RegExp(`[${open}${openEdge}${breaker}${close}]`, "gu");
}

/** True if the text contains any mark. */
export function isSealed(text: string, seal: Seal | undefined): boolean {
  return seal !== undefined && unescapeMarks(text, seal).search(anyMark(seal)) >= 0;
}
