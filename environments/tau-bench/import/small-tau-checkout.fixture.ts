import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

const task = `Task(
        annotator="0",
        user_id="u_1",
        instruction="Your name is U. " 'Cancel "#1".',
        actions=[
            Action(name="cancel", kwargs={"id": "#1", "amount": -1.0, "count": 1}),
        ],
        outputs=["10"],
    )`;

const user = `
class LLMUserSimulationEnv(BaseUserSimulationEnv):
    def build_system_prompt(self, instruction):
        instruction_display = (
            ("\\n\\nInstruction: " + instruction + "\\n")
            if instruction is not None
            else ""
        )
        return f"""Play.{instruction_display}
Stop."""

class ReactUserSimulationEnv(LLMUserSimulationEnv):
    def build_system_prompt(self, instruction):
        instruction_display = (
            ("\\nWant: " + instruction + "\\n")
            if instruction is not None
            else ""
        )
        return f"""Think.{instruction_display}"""

def verify(model, response, messages):
    prompt = f"""Good? {transcript} {response}"""

def reflect(model, response, messages):
    prompt = f"""Better! {transcript} {response}"""
`;

/** The module of the agents that call tools by text. */
export const agentSource = `
class ChatReActAgent(Agent):
    def __init__(self, tools_info, wiki, use_reasoning=True) -> None:
        instruction = REACT_INSTRUCTION if use_reasoning else ACT_INSTRUCTION
        self.prompt = (
            wiki + "\\n#Tools\\n" + json.dumps(tools_info) + instruction
        )

REACT_INSTRUCTION = f"""
Thought, then {{"name": {RESPOND_ACTION_NAME}}}
"""
ACT_INSTRUCTION = f"""
{{"{RESPOND_ACTION_FIELD_NAME}": 1}}
"""
`;

function domainFiles(name: string, tables: readonly string[], splits: readonly string[]) {
  const folder = `tau_bench/envs/${name}`;
  return {
    ...Object.fromEntries(
      tables.map((table) => [`${folder}/data/${table}.json`, '{"1": {"n": 1.0}}']),
    ),
    ...Object.fromEntries(
      splits.map((split) => [
        `${folder}/tasks_${split}.py`,
        `from tau_bench.types import Task, Action\n\nTASKS_${split.toUpperCase()} = [\n    ${task},\n]\n`,
      ]),
    ),
    [`${folder}/wiki.md`]: "# Policy é\n",
    [`${folder}/wiki.py`]: 'import os\nwith open("wiki.md", "r") as f:\n    WIKI = f.read()\n',
    [`${folder}/rules.py`]: 'RULES = [\n    "Be kind.",\n]\n',
    [`${folder}/env.py`]:
      'class Mock(Env):\n    def __init__(self, x=1):\n        super().__init__(x)\n        self.terminate_tools = ["leave"]\n',
    [`${folder}/tools/__init__.py`]:
      "from .cancel import Cancel\n\nALL_TOOLS = [\n    Cancel,\n]\n",
    [`${folder}/tools/cancel.py`]:
      "class Cancel(Tool):\n    @staticmethod\n    def invoke(data, id: str) -> str:\n        return id\n\n" +
      "    @staticmethod\n    def get_info() -> Dict[str, Any]:\n" +
      '        return {"type": "function", "function": {"name": "cancel", "description": ("a " "b")}}\n',
  };
}

/** A checkout in τ-bench's layout with our own content: the files by path. */
export const smallTauCheckout: Readonly<Record<string, string>> = {
  ...domainFiles("retail", ["orders", "products", "users"], ["test", "train", "dev"]),
  ...domainFiles("airline", ["flights", "reservations", "users"], ["test"]),
  "tau_bench/envs/user.py": user,
  "tau_bench/agents/chat_react_agent.py": agentSource,
  "tau_bench/types.py": 'RESPOND_ACTION_NAME = "respond"\nRESPOND_ACTION_FIELD_NAME = "content"\n',
  LICENSE: "MIT License\n",
};

/** Writes files into a folder, by their paths within it. */
export async function writeFiles(
  dir: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(dir, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}
