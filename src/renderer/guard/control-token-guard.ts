import { RolloutError, UsageError } from "../../errors.ts";
import { takeTurn } from "../../async/take-turn.ts";
import type { Message } from "../../message.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import type { AddedToken, TokenCodec } from "../../tokenizer/codec.ts";
import { isAscii, isSmallWord } from "../../tokenizer/disguising-text.ts";
import { isOrdinaryText } from "../../tokenizer/plain-check.ts";
import { isWhiteSpaceToken } from "../../tokenizer/white-space-token.ts";
import { literalPattern } from "./literal-pattern.ts";
import { createLiteralSealer } from "./literal-sealer.ts";
import { roleOf, toTemplateMessage } from "../openai-messages.ts";
import type { Seal, SealedPiece } from "./seal.ts";
import { chooseSeal, splitSealed } from "./seal.ts";

/**
 * The treatment of untrusted text that spells a token of the tokenizer.
 *
 * - `neutralise`: the literal stays in the text and is encoded as ordinary characters (default).
 * - `special-only`: the same for tokens that the tokenizer calls special; others, such as `<tool_call>` in some
 * families, become their ids.
 * - `hf-parity`: no protection; text is encoded as Hugging Face's tokenizers and the engines do it.
 * - `reject`: the episode fails. If the policy itself spelled the token before, the text that repeats it (such as
 * the refusal of an unknown tool) is neutralised.
 */
export type GuardPolicy = "neutralise" | "special-only" | "hf-parity" | "reject";

/** A conversation that is ready to be rendered. */
interface SealedConversation {
  readonly messages: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
  /** The marks around literals. Absent if there are no literals, which is the usual case. */
  readonly seal?: Seal;
}

/** Prevents untrusted text from forging control tokens. */
export interface ControlTokenGuard {
  readonly policy: GuardPolicy;
  /**
   * Marks the literals in untrusted strings: all of tool results and user lines, and the calls of assistant
   * messages. The policy's own words are not changed.
   *
   * @param earlier - Returns the messages before these; called only under `reject`. Default: none.
   * @throws RolloutError `environment/control-token` or `user/control-token` under `reject`.
   */
  seal(
    messages: readonly PyDict[],
    tools: readonly PyValue[] | null,
    earlier?: () => readonly (Message | PyDict)[],
  ): SealedConversation;
  /**
   * Encodes rendered text: marked literals as ordinary characters, the rest as usual.
   *
   * @throws RolloutError `internal/guard` if the template split a marked literal, or the tokenizer makes a control
   * token of ordinary characters.
   */
  encode(text: string, seal: Seal | undefined): number[] | Promise<number[]>;
}

/** Options of the guard. */
interface GuardOptions {
  readonly codec: TokenCodec;
  readonly policy: GuardPolicy;
  /** True if system messages and tool definitions are untrusted too. */
  readonly guardSystem: boolean;
  /** The other inputs of the rendering: the template's source and its variables. */
  readonly surroundings: readonly PyValue[];
}

/**
 * Makes the guard of one tokenizer.
 *
 * If the tokenizer normalises text, a text may become a token's id without spelling it. The tokenizer itself then
 * decides. Such text is neutralised, even under `reject`, since it spells no token.
 *
 * @throws UsageError if any text may become a token's id, even words that templates search for.
 */
export function createControlTokenGuard(options: GuardOptions): ControlTokenGuard {
  const { codec, policy, guardSystem, surroundings } = options;
  const allLiterals = literalPattern(codec.addedTokens.map((token) => token.content));
  const guarded = policy === "hf-parity" ? [] : guardedTokens(codec, policy);
  const disguised = guarded.filter((token) => token.disguise && !isOrdinaryText(token));
  refuseUnknowable(disguised);
  const disguisedIds = new Set(disguised.map(({ id }) => id));
  const sealer = createLiteralSealer(
    guarded.map(({ content }) => content),
    disguiseTest(disguised),
  );
  const untrusted = (message: PyDict): readonly [string, PyValue][] =>
    [...message].filter(([key]) => isUntrusted(roleOf(message), key, guardSystem));

  function isSuspect(message: PyDict): boolean {
    const role = roleOf(message);
    let isFound = false;
    message.forEach((value, key) => {
      if (isFound || !isUntrusted(role, key, guardSystem)) return;
      isFound = key === "content" ? sealer.isSuspectContent(value) : sealer.isSuspect(value);
    });
    return isFound;
  }

  function sealMessage(message: PyDict, seal: Seal): PyDict {
    const sealed = new Map(message);
    for (const [key, value] of untrusted(message)) {
      sealed.set(
        key,
        key === "content" ? sealer.sealContent(value, seal) : sealer.seal(value, seal),
      );
    }
    return sealed;
  }

  /**
   * Rejects literals in untrusted text. A literal that the policy itself spelled is its own mistake and is only
   * marked, both in its calls and if a refusal, a tool or the user repeats it. Otherwise the episode would end
   * without a score.
   */
  function rejectLiterals(messages: readonly PyDict[], earlier: readonly PyDict[]): void {
    const ownLiterals = new Set<string>();
    const addOwn = (message: PyDict): void => {
      for (const literal of sealer.literalsIn(message)) ownLiterals.add(literal);
    };
    for (const message of earlier) {
      if (roleOf(message) === "assistant") addOwn(message);
    }
    for (const message of messages) {
      if (roleOf(message) === "assistant") {
        addOwn(message);
        continue;
      }
      const literals = untrusted(message).flatMap(([, value]) => [...sealer.literalsIn(value)]);
      if (!literals.every((literal) => ownLiterals.has(literal))) throw rejection(message);
    }
  }

  async function encodePieces(pieces: readonly SealedPiece[]): Promise<number[]> {
    const encoded = await Promise.all(
      pieces.map((piece) =>
        piece.plain ? codec.encodePlain(piece.text) : codec.encode(piece.text),
      ),
    );
    return await concatenate(encoded);
  }

  async function encodeSealed(text: string, seal: Seal): Promise<number[]> {
    const ids = await encodePieces(await splitSealed(text, seal, allLiterals));
    if (!ids.some((id) => disguisedIds.has(id))) return ids;
    const apart = await splitSealed(text, seal, allLiterals, { areEdgesPlain: true });
    const plainIds = await encodePieces(apart);
    const disguisedOf = (among: readonly number[]): string =>
      String(among.filter((id) => disguisedIds.has(id)));
    // Token ids that also occur without the untrusted text belong to the template.
    return disguisedOf(ids) === disguisedOf(plainIds) ? ids : plainIds;
  }

  return {
    policy,
    seal(messages, tools, earlier = () => []) {
      const areToolsSuspect = guardSystem && sealer.isSuspect(tools);
      const isClean = !areToolsSuspect && !messages.some(isSuspect);
      if (policy === "hf-parity" || isClean) return { messages, tools };
      if (policy === "reject") {
        rejectLiterals(messages, earlier().map(toTemplateMessage));
        if (areToolsSuspect && sealer.literalsIn(tools).size > 0) throw rejection();
      }
      const seal = chooseSeal([...surroundings, messages, tools]);
      return {
        seal,
        messages: messages.map((message) => sealMessage(message, seal)),
        tools: areToolsSuspect ? (tools ?? []).map((tool) => sealer.seal(tool, seal)) : tools,
      };
    },
    encode(text, seal) {
      if (seal === undefined) return codec.encodeNow?.(text) ?? codec.encode(text);
      return encodeSealed(text, seal);
    },
  };
}

/** The number of ids that are copied in one turn on the event loop: about a millisecond's work. */
const idsPerTurn = 50_000;

async function concatenate(pieces: readonly (readonly number[])[]): Promise<number[]> {
  const ids: number[] = [];
  for (const piece of pieces) {
    for (const id of piece) {
      if (ids.length % idsPerTurn === 0) await takeTurn();
      ids.push(id);
    }
  }
  return ids;
}

/** The tokens to guard. White space among the added tokens is ordinary text. */
function guardedTokens({ addedTokens }: TokenCodec, policy: GuardPolicy): readonly AddedToken[] {
  return addedTokens.filter(
    ({ content, special }) => (special || policy !== "special-only") && !isWhiteSpaceToken(content),
  );
}

/** Returns a test that is true for a text that could become one of the tokens without spelling it. */
function disguiseTest(disguised: readonly AddedToken[]): (text: string) => boolean {
  if (disguised.length === 0) return () => false;
  if (disguised.every(({ disguise }) => disguise === "beyond-ascii")) {
    return (text) => !isAscii(text);
  }
  // Templates look up members by name and compare types with words, so these must stay unchanged.
  return (text) => !isSmallWord(text);
}

/**
 * Refuses a tokenizer that can produce an added token from other text.
 *
 * @throws UsageError
 */
function refuseUnknowable(disguised: readonly AddedToken[]): void {
  const token = disguised.find(({ disguise }) => disguise === "any");
  if (token === undefined) return;
  throw new UsageError(
    `Cannot keep untrusted text from becoming the added token ${token.content} (${token.id}): the ` +
      "tokenizer looks for it in normalised text, and its normaliser makes it of other words; expected " +
      '"normalized": false for it among the added_tokens of tokenizer.json, or the guard policy "hf-parity"',
  );
}

/** True for untrusted text. The role is set by the caller; all other text of others is untrusted. */
function isUntrusted(role: string, key: string, guardSystem: boolean): boolean {
  if (role === "assistant") return key === "tool_calls";
  if (role === "system" || role === "developer") return guardSystem && key !== "role";
  return key !== "role";
}

function rejection(culprit?: PyDict): RolloutError {
  const role = culprit === undefined ? undefined : roleOf(culprit);
  const who = role === undefined ? "a tool definition" : `a message of role "${role}"`;
  return new RolloutError(
    role === "user" ? "user/control-token" : "environment/control-token",
    `Cannot pass on ${who}: it spells a control token, and the guard policy is "reject"`,
  );
}
