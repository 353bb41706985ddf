// Starts `torchstone lsp` for Python files; everything that it says comes from the server.

import * as vscode from "vscode";
import { LanguageClient, ServerOptions } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

/** The command of the settings, relative to the first folder, and the language of the editor. */
function serverOptions(): ServerOptions {
  const settings = vscode.workspace.getConfiguration("torchstone");
  const [command, ...args] = settings.get<string[]>("command", ["torchstone", "lsp"]);
  const wanted = settings.get<string>("language", "auto");
  const language = wanted === "auto" ? (vscode.env.language.startsWith("zh") ? "zh" : "en") : wanted;
  const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  return { command, args: [...args, "--lang", language], options: { cwd } };
}

async function start(): Promise<void> {
  client = new LanguageClient("torchstone", "Torchstone", serverOptions(), {
    documentSelector: [
      { scheme: "file", language: "python" },
      { scheme: "untitled", language: "python" },
    ],
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const answer = 'pip install "torchstone[lsp]", or set torchstone.command';
    void vscode.window.showErrorMessage(`Torchstone did not start (${String(error)}). To do: ${answer}`);
  }
}

async function stop(): Promise<void> {
  await client?.stop();
  client = undefined;
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const restart = async (): Promise<void> => {
    await stop();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("torchstone.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("torchstone")) void restart();
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}
