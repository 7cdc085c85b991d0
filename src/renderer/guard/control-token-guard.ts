import { RolloutError, UsageError } from "../../errors.ts";
import { takeTurn } from "../../async/take-turn.ts";
import type { Message } from "../../message.ts";
import type { PyDict, PyValue } from "../../python/value.ts";
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
 * What happens to untrusted text that spells a token of the tokenizer.
 *
 * - `neutralise`: the literal stays in the text and is encoded as ordinary characters (default).
 * - `special-only`: the same, for the tokens that the tokenizer calls special; others, such as
 *   `<tool_call>` in some families, become their ids.
 * - `hf-parity`: nothing; text is encoded as Hugging Face's tokenizers and the engines do it.
 * - `reject`: the episode fails, unless the policy itself has spelled the token before: what tells it of that,
 *   such as a refusal with the name of a tool that there is not, is neutralised.
 */
export type GuardPolicy = "neutralise" | "special-only" | "hf-parity" | "reject";

/** A conversation that is ready to be rendered. */
interface SealedConversation {
  readonly messages: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
  /** How to find the literals again; absent where there are none, which is the ordinary case. */
  readonly seal?: Seal;
}

/** Keeps untrusted text from forging control tokens. */
export interface ControlTokenGuard {
  readonly policy: GuardPolicy;
  /**
   * Marks the literals in untrusted strings: everything in tool results and user lines, and the
   * calls of assistant messages. What the policy said in words is not touched.
   *
   * @param earlier - What was said before these messages; asked for under `reject` alone. Default: nothing.
   * @throws RolloutError `environment/control-token` or `user/control-token` under `reject`.
   */
  seal(
    messages: readonly PyDict[],
    tools: readonly PyValue[] | null,
    earlier?: () => readonly (Message | PyDict)[],
  ): SealedConversation;
  /**
   * The ids of rendered text: marked literals as ordinary characters, all else as ever.
   *
   * @throws RolloutError `internal/guard` where the template cut a marked literal, or the tokenizer makes a control
   *   token of ordinary characters.
   */
  encode(text: string, seal: Seal | undefined): number[] | Promise<number[]>;
}

/** How a guard is made. */
interface GuardOptions {
  readonly codec: TokenCodec;
  readonly policy: GuardPolicy;
  /** Whether system messages and tool definitions are untrusted too. */
  readonly guardSystem: boolean;
  /** What is rendered beside the conversation: the template's source and its variables. */
  readonly surroundings: readonly PyValue[];
}

/**
 * Makes the guard of one tokenizer.
 *
 * Where text becomes a token's id only once it is normalised, the tokenizer itself is asked whether it did: such text
 * is neutralised under `reject`, too, for it spells nothing.
 *
 * @throws UsageError where any text may become a token's id, even words that templates look for.
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
   * What the policy itself spelled is its own mistake and is only marked: where it wrote it, and where it is
   * told of it by a refusal, a tool or the user. It would else end its episode without a score.
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
    // Those that are there without what is not trusted are the template's own.
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

/** How many ids are copied between two turns on the event loop: about a millisecond's work. */
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

/** White space that a tokenizer lists among its added tokens is ordinary text, not control. */
function guardedTokens({ addedTokens }: TokenCodec, policy: GuardPolicy): readonly AddedToken[] {
  return addedTokens.filter(
    ({ content, special }) => (special || policy !== "special-only") && !isWhiteSpaceToken(content),
  );
}

/** Whether a text could become one of the tokens though it does not spell it. */
function disguiseTest(disguised: readonly AddedToken[]): (text: string) => boolean {
  if (disguised.length === 0) return () => false;
  if (disguised.every(({ disguise }) => disguise === "beyond-ascii")) {
    return (text) => !isAscii(text);
  }
  // Templates look for members by their names and compare types with words, which must therefore stay whole.
  return (text) => !isSmallWord(text);
}

/** @throws UsageError */
function refuseUnknowable(disguised: readonly AddedToken[]): void {
  const token = disguised.find(({ disguise }) => disguise === "any");
  if (token === undefined) return;
  throw new UsageError(
    `Cannot keep untrusted text from becoming the added token ${token.content} (${token.id}): the ` +
      "tokenizer looks for it in normalised text, and its normaliser makes it of other words; expected " +
      '"normalized": false for it among the added_tokens of tokenizer.json, or the guard policy "hf-parity"',
  );
}

/** The role is the caller's own word; everything else that others wrote is not to be trusted. */
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
