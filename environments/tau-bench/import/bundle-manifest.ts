import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { UsageError } from "../../../src/errors.ts";

/** The manifest's file within a bundle. */
export const manifestFile = "bundle.json";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, "expected 64 hexadecimal digits");
const inBundle = z
  .string()
  .regex(/^(?!.*(?:^|\/)\.\.?(?:\/|$))[\w.-]+(?:\/[\w.-]+)*$/, "expected a path within the bundle");

const manifestSchema = z.strictObject({
  /** Version of this format. */
  format: z.literal(1),
  benchmark: z.literal("tau-bench"),
  /** The origin of the data. */
  source: z.string().min(1),
  /** The commit of the source; `null` if the checkout has no commit. */
  commit: z.nullable(
    z.string().regex(/^[0-9a-f]{40}$/, "expected a commit's 40 hexadecimal digits"),
  ),
  /** Files that differ from that commit's; absent if none differ or the commit is unknown. */
  changed: z.array(z.string()).exactOptional(),
  /** The licence of the data, as an SPDX name; its text is in `LICENSE`. */
  license: z.string().min(1),
  /** SHA-256 of each file of the source that was read. */
  inputs: z.record(z.string(), sha256),
  /** SHA-256 of each file of the bundle except this one. */
  files: z.record(inBundle, sha256),
});

/** The content of `bundle.json` of a τ-bench bundle. JSON-able. */
export type BundleManifest = Readonly<z.infer<typeof manifestSchema>>;

/**
 * Reads a bundle's manifest; `undefined` if the folder has none.
 *
 * @throws UsageError naming the file and field of an invalid manifest.
 */
async function readBundleManifest(directory: string): Promise<BundleManifest | undefined> {
  const file = path.join(directory, manifestFile);
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new UsageError(`Cannot read ${file}`, { cause: error });
  }
  const result = manifestSchema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new UsageError(`Cannot read ${file}: ${issue?.path.join(".")}: ${issue?.message}`);
}

/**
 * Checks that a bundle's files, or the files in a folder such as `retail/`, match its manifest. A folder without a
 * manifest passes.
 *
 * @returns the manifest, if there is one.
 * @throws UsageError naming the file that is absent or changed, or the manifest's invalid field.
 */
export async function checkBundle(
  directory: string,
  { under = "" }: { readonly under?: string } = {},
): Promise<BundleManifest | undefined> {
  const manifest = await readBundleManifest(directory);
  if (manifest === undefined) return undefined;
  for (const [name, wanted] of Object.entries(manifest.files)) {
    if (!name.startsWith(under)) continue;
    const file = path.join(directory, name);
    const content = await readFile(file).catch((error: unknown) => {
      throw new UsageError(`Cannot read ${file}, which ${manifestFile} names`, { cause: error });
    });
    const found = sha256Of(content);
    if (found !== wanted) {
      throw new UsageError(
        `Cannot use ${file}: its SHA-256 is ${found}, expected ${wanted} as ${manifestFile} says; ` +
          "import the bundle again, or delete the manifest to use changed data on purpose",
      );
    }
  }
  return manifest;
}

/** The SHA-256 as 64 hexadecimal digits. */
export function sha256Of(content: Buffer | string): string {
  return createHash("sha256").update(content).digest("hex");
}
