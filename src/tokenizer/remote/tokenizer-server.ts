/** A request to a tokenizer in another thread or process. */
export type TokenizerRequest =
  /** Loads an instance from the text of its document. */
  | { readonly type: "load"; readonly instance: Instance; readonly text: string }
  | { readonly type: "encode"; readonly instance: Instance; readonly text: string }
  /** Encodes, and returns the piece that each id belongs to. Native library only. */
  | { readonly type: "cut"; readonly instance: Instance; readonly text: string }
  | { readonly type: "decode"; readonly ids: readonly number[] }
  /** Looks up the ids of tokens: -1 for unknown ones. */
  | { readonly type: "ids"; readonly tokens: readonly string[] };

/** The instances of a file's tokenizer: one finds added tokens, the plain one does not. */
export type Instance = "full" | "plain";

/** The reply to a request. `problem` is set if it failed. */
export interface TokenizerReply {
  readonly id: number;
  readonly ids?: Int32Array;
  /** The piece of each id, or -1. */
  readonly pieces?: Int32Array;
  readonly text?: string;
  readonly problem?: string;
}

/** A request with the number of its reply. */
export type NumberedRequest = TokenizerRequest & { readonly id: number };

/** The context of a server: its messages and its library. */
export interface ServerContext {
  readonly require: NodeJS.Require;
  /** The tokenizer library's file. */
  readonly library: string;
  readonly listen: (answer: (request: NumberedRequest) => void) => void;
  readonly send: (reply: TokenizerReply) => void;
}

/**
 * Answers requests with Hugging Face's tokenizer in JavaScript.
 *
 * A thread or process runs the source text of this function, so it must not use anything outside
 * its parameter.
 */
export function serveJavascript({ require, library, listen, send }: ServerContext): void {
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
        // No clean-up, so that decoded texts equal the encoded ones.
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

/** Answers requests with Hugging Face's native tokenizer. See `serveJavascript()`. */
export function serveNative({ require, library, listen, send }: ServerContext): void {
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

/** The part of `@huggingface/tokenizers` that is used. Its own types cannot be resolved. */
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
