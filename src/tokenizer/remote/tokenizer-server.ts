/** What a tokenizer elsewhere is asked. */
export type TokenizerRequest =
  /** Loads a library's instance for encoding with added tokens, or without. */
  | { readonly type: "load"; readonly instance: Instance; readonly text: string }
  | { readonly type: "encode"; readonly instance: Instance; readonly text: string }
  /** Encodes, and says which piece of the text each id is of. The native library alone. */
  | { readonly type: "cut"; readonly instance: Instance; readonly text: string }
  | { readonly type: "decode"; readonly ids: readonly number[] }
  /** Asks for the ids of tokens: -1 for those that the library does not have. */
  | { readonly type: "ids"; readonly tokens: readonly string[] };

/** Which of a file's two tokenizers: the one that knows the added tokens, or the plain one. */
export type Instance = "full" | "plain";

/** What it answers; `problem` says why it could not. */
export interface TokenizerReply {
  readonly id: number;
  readonly ids?: Int32Array;
  /** For each id; -1 where it is of none. */
  readonly pieces?: Int32Array;
  readonly text?: string;
  readonly problem?: string;
}

/** A request with the number that its reply carries. */
export type NumberedRequest = TokenizerRequest & { readonly id: number };

/** What a server runs with: how it is asked and answers, and its library. */
export interface ServerPlace {
  readonly require: NodeJS.Require;
  /** The tokenizer library's file. */
  readonly library: string;
  readonly listen: (answer: (request: NumberedRequest) => void) => void;
  readonly send: (reply: TokenizerReply) => void;
}

/**
 * Answers requests with Hugging Face's tokenizer in JavaScript.
 *
 * The text of a server is what its thread or process runs, so it uses nothing from around it but its
 * parameter.
 */
export function serveJavascript({ require, library, listen, send }: ServerPlace): void {
  const { Tokenizer } = require(library) as JavascriptLibrary;
  const tokenizers = new Map<Instance, JavascriptTokenizer>();
  const find = (instance: Instance) => {
    const tokenizer = tokenizers.get(instance);
    if (tokenizer === undefined) throw new Error(`the tokenizer "${instance}" is not loaded`);
    return tokenizer;
  };
  listen((request) => {
    const { id } = request;
    try {
      if (request.type === "load") {
        // No cleaning up: texts are read back as they were tokenised.
        const config = { clean_up_tokenization_spaces: false };
        const document = JSON.parse(request.text) as object;
        tokenizers.set(request.instance, new Tokenizer(document, config));
        send({ id });
      } else if (request.type === "decode") {
        const options = { skip_special_tokens: false, clean_up_tokenization_spaces: false };
        send({ id, text: find("full").decode([...request.ids], options) });
      } else if (request.type === "ids") {
        const full = find("full");
        const ids = request.tokens.map((token) => full.token_to_id(token) ?? -1);
        send({ id, ids: Int32Array.from(ids) });
      } else {
        const { ids } = find(request.instance).encode(request.text, { add_special_tokens: false });
        const known = ids.filter((tokenId) => tokenId !== undefined);
        if (known.length < ids.length) throw new Error("the vocabulary lacks part of the text");
        send({ id, ids: Int32Array.from(known) });
      }
    } catch (error) {
      send({ id, problem: error instanceof Error ? error.message : String(error) });
    }
  });
}

/** Answers requests with Hugging Face's native tokenizer; see `serveJavascript()`. */
export function serveNative({ require, library, listen, send }: ServerPlace): void {
  const { Tokenizer } = require(library) as NativeLibrary;
  const tokenizers = new Map<Instance, NativeTokenizer>();
  const find = (instance: Instance) => {
    const tokenizer = tokenizers.get(instance);
    if (tokenizer === undefined) throw new Error(`the tokenizer "${instance}" is not loaded`);
    return tokenizer;
  };
  const answer = async (request: NumberedRequest): Promise<Omit<TokenizerReply, "id">> => {
    if (request.type === "load") {
      tokenizers.set(request.instance, Tokenizer.fromString(request.text));
      return {};
    }
    if (request.type === "decode") {
      return { text: await find("full").decode([...request.ids], false) };
    }
    if (request.type === "ids") {
      const full = find("full");
      return { ids: Int32Array.from(request.tokens, (token) => full.tokenToId(token) ?? -1) };
    }
    const options = { addSpecialTokens: false };
    const encoding = await find(request.instance).encode(request.text, null, options);
    const ids = Int32Array.from(encoding.getIds());
    if (request.type === "encode") return { ids };
    return { ids, pieces: Int32Array.from(encoding.getWordIds(), (piece) => piece ?? -1) };
  };
  listen((request) => {
    void answer(request).then(
      (reply) => send({ id: request.id, ...reply }),
      (error: unknown) =>
        send({ id: request.id, problem: error instanceof Error ? error.message : String(error) }),
    );
  });
}

interface JavascriptTokenizer {
  encode(
    text: string,
    options: { readonly add_special_tokens: boolean },
  ): { readonly ids: readonly (number | undefined)[] };
  decode(
    ids: number[],
    options: {
      readonly skip_special_tokens: boolean;
      readonly clean_up_tokenization_spaces: boolean;
    },
  ): string;
  token_to_id(token: string): number | undefined;
}

/** The part of `@huggingface/tokenizers` that is used; its own types cannot be resolved. */
interface JavascriptLibrary {
  readonly Tokenizer: new (document: object, config: object) => JavascriptTokenizer;
}

interface NativeTokenizer {
  encode(
    text: string,
    pair: null,
    options: { readonly addSpecialTokens: boolean },
  ): Promise<{
    getIds(): readonly number[];
    getWordIds(): readonly (number | null | undefined)[];
  }>;
  decode(ids: number[], skipSpecialTokens: boolean): Promise<string>;
  tokenToId(token: string): number | null;
}

/** The part of `tokenizers` that is used. */
interface NativeLibrary {
  readonly Tokenizer: { fromString(text: string): NativeTokenizer };
}
