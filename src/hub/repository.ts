import { z } from "zod";
import { UsageError } from "../errors.ts";

/** A file of a model in the hub's list. */
export interface RepositoryFile {
  readonly name: string;
  readonly bytes: number;
  /** The SHA-256 of a large file (64 digits), or git's own hash of any other file (40 digits). */
  readonly hash: string;
}

/** The files for tokenizing and rendering, with their maximum sizes. Weights are not among them. */
const usedFiles: readonly (readonly [pattern: RegExp, maxBytes: number])[] = [
  [/^tokenizer\.json$/, 128 * 2 ** 20],
  [
    /^(?:tokenizer_config|special_tokens_map|added_tokens|generation_config|config)\.json$/,
    8 * 2 ** 20,
  ],
  [/^chat_template\.(?:jinja|json)$/, 4 * 2 ** 20],
  [/^additional_chat_templates\/[\w.-]+\.jinja$/, 4 * 2 ** 20],
];

const listSchema = z.looseObject({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  siblings: z.array(z.unknown()),
});

const namedSchema = z.looseObject({ rfilename: z.string() });

/** The schema of a used file. Other files in the list are not validated. */
const wantedSchema = z.looseObject({
  size: z.number().nullish(),
  blobId: z
    .string()
    .regex(/^[0-9a-f]{40}$/)
    .nullish(),
  lfs: z
    .looseObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/), size: z.number().nullish() })
    .nullish(),
});

/**
 * Reads the hub's list of a model: its commit and the used files.
 *
 * @throws UsageError if it has no tokenizer, or if a file is too large.
 */
export function readRepository(
  text: string,
  model: string,
): { readonly commit: string; readonly files: readonly RepositoryFile[] } {
  const list = listSchema.safeParse(parse(text));
  if (!list.success) {
    throw new UsageError(`Cannot fetch ${model}: the hub's answer does not list its files`);
  }
  const files: RepositoryFile[] = [];
  for (const sibling of list.data.siblings) {
    const name = namedSchema.safeParse(sibling).data?.rfilename ?? "";
    const found = usedFiles.find(([pattern]) => pattern.test(name));
    if (found === undefined) continue;
    const described = wantedSchema.safeParse(sibling);
    if (!described.success) {
      throw new UsageError(
        `Cannot fetch ${model}: the hub's answer describes its ${name} in an unknown form`,
      );
    }
    const { size, blobId, lfs } = described.data;
    const hash = lfs?.sha256 ?? blobId ?? undefined;
    if (hash === undefined) {
      throw new UsageError(`Cannot fetch ${model}: the hub's answer has no hash of its ${name}`);
    }
    const bytes = lfs?.size ?? size ?? found[1];
    if (bytes > found[1]) {
      throw new UsageError(
        `Cannot fetch ${model}: its ${name} has ${bytes} bytes, expected ${found[1]} at most`,
      );
    }
    files.push({ name, bytes, hash });
  }
  if (!files.some(({ name }) => name === "tokenizer.json")) {
    throw new UsageError(
      `Cannot fetch ${model}: it has no tokenizer.json, expected a model with one (for a GGUF model ` +
        "use the model that it was made from)",
    );
  }
  return { commit: list.data.sha, files };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
