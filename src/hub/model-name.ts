import { UsageError } from "../errors.ts";

/** A model of the hub. */
export interface ModelName {
  readonly owner: string;
  readonly name: string;
  /** A branch, a tag or a commit. Default `main`. */
  readonly revision: string;
}

/**
 * Reads a model's name of the form `hf:OWNER/NAME` or `hf:OWNER/NAME@REVISION`.
 *
 * @throws UsageError for any other form.
 */
export function readModelName(text: string): ModelName {
  const match = /^hf:([\w.-]+)\/([\w.-]+)(?:@([\w./-]+))?$/.exec(text);
  const [, owner = "", name = "", revision = "main"] = match ?? [];
  const isSafe = [owner, name, ...revision.split("/")].every((part) => !/^\.*$/.test(part));
  if (match !== null && isSafe) return { owner, name, revision };
  throw new UsageError(
    `Cannot read the model's name ${text}: expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION`,
  );
}
