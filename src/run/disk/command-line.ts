import path from "node:path";
import { Redactor } from "../../secrets/redactor.ts";

/** Returns the program and its arguments without the interpreter, and without passwords and keys in URLs. */
export function commandLine([, script = "", ...parts]: readonly string[]): string {
  const text = [path.basename(script, ".js"), ...parts].join(" ");
  const redactor = new Redactor();
  for (const [address] of text.matchAll(/[a-z][a-z\d+.-]*:\/\/\S+/gi)) redactor.learnUrl(address);
  return redactor.text(text.replaceAll(/\/\/[^/@\s]+@/g, "//…@")).slice(0, 500);
}
