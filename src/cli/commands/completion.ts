import { Argument, Command } from "commander";
import { writeOut } from "../write-out.ts";

const shells = ["bash", "zsh", "fish"] as const;

/** A command that can be completed. */
interface CompletedCommand {
  readonly name: string;
  readonly load: () => Promise<(command: Command) => void>;
}

/**
 * `turnwright completion`: prints a script with which a shell completes commands, flags and their
 * choices.
 */
export function defineCompletion(command: Command, table: readonly CompletedCommand[]): void {
  command
    .description(
      "Prints a script that lets the shell complete commands, flags and what they may be given:\n" +
        '  bash, zsh: eval "$(turnwright completion bash)" in .bashrc, with zsh in .zshrc\n' +
        "  fish: turnwright completion fish > ~/.config/fish/completions/turnwright.fish",
    )
    .addArgument(new Argument("<shell>", "the shell").choices(shells))
    .action(async (shell: (typeof shells)[number]) => {
      const words = await completionWords(table);
      await writeOut(shell === "fish" ? fishScript(words) : bashScript(words, shell));
    });
}

/**
 * The possible next words by the beginning of a call: `""`, `env`, `env check`, or `rollout
 * --engine`.
 */
type CompletionWords = ReadonlyMap<string, readonly string[]>;

async function completionWords(table: readonly CompletedCommand[]): Promise<CompletionWords> {
  const words = new Map([["", table.map(({ name }) => name)]]);
  for (const { name, load } of table) {
    const command = new Command(name);
    (await load())(command);
    addWords(words, name, command);
  }
  return words;
}

function addWords(words: Map<string, readonly string[]>, path: string, command: Command): void {
  const flags = command.options.flatMap(({ long }) => long ?? []);
  words.set(path, [...command.commands.map((child) => child.name()), ...flags, "--help"]);
  for (const { long, argChoices } of command.options) {
    if (argChoices !== undefined) words.set(`${path} ${long}`, argChoices);
  }
  for (const child of command.commands) addWords(words, `${path} ${child.name()}`, child);
}

/** Starts zsh's own completion, which the emulation needs and some .zshrc files do not start. */
const zshStart =
  "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }\n" +
  "autoload -Uz bashcompinit && bashcompinit\n";

/**
 * Returns the completion script. It completes file names after unknown words. zsh runs it in its emulation of bash.
 */
function bashScript(words: CompletionWords, shell: "bash" | "zsh"): string {
  const cases = [...words].map(([path, list]) => `    "${path}") words="${list.join(" ")}" ;;`);
  return `${shell === "zsh" ? zshStart : ""}_turnwright() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path="" words="" n
  for ((n = 1; n < COMP_CWORD; n++)); do
    case "\${COMP_WORDS[n]}" in -*) break ;; esac
    if [ "$n" -gt 2 ]; then break; fi
    if [ "$n" -eq 2 ] && [ "$path" != env ]; then break; fi
    path="\${path:+$path }\${COMP_WORDS[n]}"
  done
  case "$previous" in -*) _turnwright_words "$path $previous" ;; esac
  if [ -z "$words" ]; then
    case "$previous:$current" in -*:[!-]*|-*:) ;; *) _turnwright_words "$path" ;; esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
_turnwright_words() {
  case "$1" in
${cases.join("\n")}
  esac
}
complete -o default -F _turnwright turnwright
`;
}

function fishScript(words: CompletionWords): string {
  const quote = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  const lines = [...words].flatMap(([path, list]) => {
    const [command = "", second] = path.split(" ");
    if (path === "") {
      return [`complete -c turnwright -f -n __fish_use_subcommand -a ${quote(list.join(" "))}`];
    }
    const seen = path.split(" ").filter((word) => !word.startsWith("-"));
    const when = quote(seen.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and "));
    if (second?.startsWith("--") === true) {
      return [
        `complete -c turnwright -n ${when} -l ${second.slice(2)} -x -a ${quote(list.join(" "))}`,
      ];
    }
    const flags = list.filter((word) => word.startsWith("--"));
    const children = list.filter((word) => !word.startsWith("--"));
    return [
      ...flags.map((flag) => `complete -c turnwright -n ${when} -l ${flag.slice(2)}`),
      ...(children.length > 0
        ? [
            `complete -c turnwright -f -n '__fish_seen_subcommand_from ${command}' -a ${quote(children.join(" "))}`,
          ]
        : []),
    ];
  });
  return `${lines.join("\n")}\n`;
}
