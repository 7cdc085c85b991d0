import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { controlShapes } from "../../src/renderer/delta/stop-literals.ts";
import { modelFolder } from "../../src/tokenizer/real-tokenizers.fixture.ts";

/** A model family as its model folder shows it. */
export interface Family {
  /** Such as `qwen3`; the name of its folder. */
  readonly name: string;
  /** The published chat template, a file of the shared data. */
  readonly template: string;
  /**
   * Appended to the published template's system message, if the template does not show the tools.
   */
  readonly showTools?: { readonly behind: string; readonly text: string };
  /**
   * The tokenizer's byte pairs. `stand-in`: the first ones of Qwen3's, which load in a tenth of the
   * time.
   */
  readonly tokenizer: "qwen3" | "qwen2_5" | "llama3" | "stand-in";
  /** Added tokens that the template does not contain, or that have an unusual form. */
  readonly tokens?: readonly string[];
  readonly bosToken?: string;
  /** The tokenizer's own end. */
  readonly eosToken: string;
  /** The ids that `generation_config.json` lists. */
  readonly endTokens: readonly string[];
}

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
}

interface TokenizerJson {
  readonly added_tokens: readonly AddedToken[];
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly unknown[];
  };
}

/** Markup is not a control token: published tokenizers list it as not special, if at all. */
const markup = /^<\/?[a-z_]+>$/;

/**
 * Writes the family's model folder in the layout of Hugging Face: a real byte-pair tokenizer with
 * the family's added tokens, its published chat template, and the ids that end generation.
 */
export async function writeFamilyModel(
  family: Family,
  { into, templates }: { readonly into: string; readonly templates: string },
): Promise<string> {
  const dir = path.join(into, family.name);
  const published = await readFile(path.join(templates, family.template), "utf8");
  const { behind = "", text = "" } = family.showTools ?? {};
  const template = published.replace(behind, () => behind + text);
  const { tokenizer, modelText } = await readBase(family.tokenizer);
  const spelled = [...template.matchAll(controlShapes)].map(([literal]) => literal);
  const { added, idOf } = addTokens(tokenizer, [
    ...(family.bosToken === undefined ? [] : [family.bosToken]),
    family.eosToken,
    ...family.endTokens,
    ...(family.tokens ?? []),
    ...spelled,
  ]);
  await mkdir(dir, { recursive: true });
  const outline = JSON.stringify({ ...tokenizer, added_tokens: added });
  const files = {
    "tokenizer.json": `${outline.slice(0, -1)},"model":${modelText}}`,
    "tokenizer_config.json": JSON.stringify({
      eos_token: family.eosToken,
      ...(family.bosToken !== undefined && { bos_token: family.bosToken }),
    }),
    "generation_config.json": JSON.stringify({ eos_token_id: family.endTokens.map(idOf) }),
    "chat_template.jinja": template,
  };
  for (const [name, content] of Object.entries(files)) {
    await writeFile(path.join(dir, name), content);
  }
  return dir;
}

/** A tokenizer's file, of which only the added tokens change. */
interface Base {
  readonly tokenizer: Omit<TokenizerJson, "model">;
  /** The JSON of its model, nearly all of the file. */
  readonly modelText: string;
}

const bases = new Map<Family["tokenizer"], Promise<Base>>();

/** Reads each tokenizer once: several families have the same. */
async function readBase(name: Family["tokenizer"]): Promise<Base> {
  const known = bases.get(name);
  if (known !== undefined) return await known;
  const whole = readTokenizer(name === "stand-in" ? "qwen3" : name);
  const base = whole.then((read) => {
    const { model, ...tokenizer } = name === "stand-in" ? withFirstMerges(read, 16_000) : read;
    return { tokenizer, modelText: JSON.stringify(model) };
  });
  bases.set(name, base);
  return await base;
}

async function readTokenizer(name: Parameters<typeof modelFolder>[0]): Promise<TokenizerJson> {
  const file = path.join(modelFolder(name), "tokenizer.json");
  return JSON.parse(await readFile(file, "utf8")) as TokenizerJson;
}

/** A byte-pair model that learned less: its ids are those of the bytes, and then one for each merge. */
function withFirstMerges(whole: TokenizerJson, mergeCount: number): TokenizerJson {
  const size = 256 + mergeCount;
  return {
    ...whole,
    added_tokens: whole.added_tokens.map((token, index) => ({ ...token, id: size + index })),
    model: {
      ...whole.model,
      vocab: Object.fromEntries(Object.entries(whole.model.vocab).filter(([, id]) => id < size)),
      merges: whole.model.merges.slice(0, mergeCount),
    },
  };
}

/** The added tokens with those that are missing; their ids are the last ones. */
function addTokens({ added_tokens: known }: Base["tokenizer"], literals: readonly string[]) {
  const [first] = known;
  if (first === undefined) throw new Error("expected a tokenizer with added tokens");
  const added = [...known];
  const ids = new Map(known.map(({ id, content }) => [content, id]));
  let next = 1 + Math.max(...ids.values());
  for (const content of literals) {
    if (ids.has(content)) continue;
    added.push({ ...first, id: next, content, special: !markup.test(content) });
    ids.set(content, next);
    next += 1;
  }
  const idOf = (literal: string): number => {
    const id = ids.get(literal);
    if (id === undefined) throw new Error(`expected ${literal} to be a token`);
    return id;
  };
  return { added, idOf };
}
