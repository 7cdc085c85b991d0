import path from "node:path";

/** Maximum length of one argument in Linux, in bytes: 32 pages, without the NUL at the end. */
const longestBytes = 131_071;
/**
 * Length of a piece in UTF-16 units. Each unit has at most three bytes, so that a piece fits into
 * one argument.
 */
const pieceLength = 40_000;
/** Programs that read a script from the argument after `-c`. */
const shells: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "ksh", "zsh"]);
/**
 * A shell script that joins texts from pieces and runs them. Its arguments are the number of texts
 * and, for each text, the number of its pieces followed by the pieces. The first text is the script
 * to run, and the other texts are its arguments.
 */
const joinAndRun = `k=$1; shift
while [ "$k" -gt 0 ]; do
  n=$1; v=; shift
  while [ "$n" -gt 0 ]; do v=$v$1; shift; n=$((n-1)); done
  set -- "$@" "$v"; k=$((k-1))
done
v=$1; shift; unset k n; eval "$v"`;

/**
 * Splits the arguments of a shell script into pieces if one is longer than Linux allows (128 KiB).
 * The shell joins the pieces. Returns all other commands unchanged, because other programs cannot
 * join pieces.
 * **Source:** execve(2), "Limits on size of arguments and environment": `MAX_ARG_STRLEN`.
 */
export function fitArguments(command: readonly string[]): readonly string[] {
  const longAt = command.findIndex(isTooLong);
  if (longAt === -1) return command;
  const shellAt = command.findIndex((text) => shells.has(path.posix.basename(text)));
  const optionAt = command.findIndex(
    (text, index) => index > shellAt && /^-[A-Za-z]*c[A-Za-z]*$/.test(text),
  );
  const scriptAt = command.findIndex((text, index) => index > optionAt && !/^[-+]/.test(text));
  if (shellAt === -1 || optionAt === -1 || scriptAt === -1 || longAt < scriptAt) return command;
  const [script = "", name = command[shellAt] ?? "sh", ...rest] = command.slice(scriptAt);
  const texts = [script, ...rest];
  const pieces = texts
    .map((text) => cut(text))
    .flatMap((parts) => [String(parts.length), ...parts]);
  return [...command.slice(0, scriptAt), joinAndRun, name, String(texts.length), ...pieces];
}

function isTooLong(text: string): boolean {
  // UTF-8 has at most three bytes for each UTF-16 unit.
  return text.length * 3 > longestBytes && Buffer.byteLength(text) > longestBytes;
}

/** Splits a text into pieces of at most `pieceLength`, and never within a surrogate pair. */
function cut(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = start + pieceLength;
    const isWithinPair = /[\uD800-\uDBFF]/.test(text.charAt(end - 1));
    pieces.push(text.slice(start, isWithinPair ? end - 1 : end));
    start = isWithinPair ? end - 1 : end;
  }
  return pieces;
}
