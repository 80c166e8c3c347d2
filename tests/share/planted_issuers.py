"""Three hundred secrets and names, each alone in a line, drawn from the formats that their issuers document.

Written before the redactor knew of them, and from no rule file: the sources stand beside the formats. A hole
between « and » holds what nobody else may read: a class of characters and how many of it (``w36``), or a
kind of name. Everything outside of holes may stay.
"""

# ruff: noqa: E501  lines of logs are as long as they are

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass

_CLASSES = {
    "w": string.ascii_letters + string.digits,
    "x": "0123456789abcdef",
    "X": "0123456789ABCDEF",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + "234567",
    "U": string.ascii_uppercase + string.digits,
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "-_",
}
_CODE_LIKE = "$(</>{&!#%*^)"
_PEOPLE = (
    "mkowalska",
    "j.doerr42",
    "xchen7",
    "priya_r",
    "tobias-w",
    "aokafor",
    "lindqvist",
    "rsato",
    "gferrari",
    "zhangwei",
)
_HOSTS = (
    "gpu-17",
    "dgx-a100-04",
    "r7i3n2",
    "nid001234",
    "cn0412",
    "hgx07",
    "tau-gpu3",
    "node-b12",
    "jwb0097",
    "nautilus",
)


@dataclass(frozen=True, slots=True)
class Form:
    """A format: what it is, where its issuer describes it, and lines in which it appears."""

    kind: str
    source: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planted:
    """A line of a log and the pieces of it that nobody else may read."""

    kind: str
    line: str
    pieces: tuple[str, ...]

    def left(self, shown: str) -> tuple[str, ...]:
        """The pieces of which six characters in a row, or all where they are fewer, are still to be read."""
        return tuple(
            piece
            for piece in self.pieces
            if any(piece[at : at + 6] in shown for at in range(max(1, len(piece) - 5)))
        )


def planted(count: int = 300, seed: int = 2026) -> list[Planted]:
    """``count`` lines, every format in turn, the same for the same seed."""
    lot = random.Random(seed)
    rounds: list[Planted] = []
    number = 0
    while len(rounds) < count:
        for form in FORMS:
            if number < len(form.lines) or number >= _MOST_LINES:
                rounds.append(_filled(form.kind, form.lines[number % len(form.lines)], lot))
        number += 1
    return rounds[:count]


def _filled(kind: str, line: str, lot: random.Random) -> Planted:
    pieces: list[str] = []
    text: list[str] = []
    for at, part in enumerate(re.split(r"«(.+?)»", line)):
        made = _hole(part, lot) if at % 2 else part
        text.append(made)
        if at % 2:
            pieces.append(made)
    return Planted(kind, "".join(text), tuple(pieces))


def _hole(name: str, lot: random.Random) -> str:
    if name == "user":
        return lot.choice(_PEOPLE)
    if name == "host":
        return lot.choice(_HOSTS)
    if name == "ipv4":
        return ".".join(map(str, (lot.choice((3, 18, 34, 52, 129, 141)), *lot.choices(range(1, 255), k=3))))
    if name == "private":
        return f"10.{lot.randint(0, 255)}.{lot.randint(0, 255)}.{lot.randint(1, 254)}"
    if name == "dashed":
        return f"10-{lot.randint(0, 255)}-{lot.randint(0, 255)}-{lot.randint(1, 254)}"
    if name == "person":
        return lot.choice(("Marta Kowalska", "Jan Doerr", "Xin Chen", "Priya Raman", "Tobias Wendt"))
    if name == "uuid":
        return "-".join(_some("x", length, lot) for length in (8, 4, 4, 4, 12))
    if name == "codelike":
        marks = lot.sample(_CODE_LIKE, 3)
        return "".join(_some("w", 3, lot) + mark for mark in marks) + _some("w", 2, lot)
    if name == "marked":
        return lot.choice("$(</") + _some("w", 4, lot) + lot.choice("(<&!") + _some("w", 4, lot)
    if name == "password":
        return _some("w", 6, lot) + lot.choice("!-_.+") + _some("w", 4, lot)
    return "".join(_some(part[0], int(part[1:]), lot) for part in name.split("+"))


def _some(kind: str, length: int, lot: random.Random) -> str:
    """Characters of a class; a long run holds a digit, as what is drawn at random practically always does."""
    alphabet = _CLASSES[kind]
    while True:
        text = "".join(lot.choice(alphabet) for _ in range(length))
        if length < 16 or any(char.isdigit() for char in text):
            return text


# fmt: off
FORMS: tuple[Form, ...] = (
    # cloud providers
    Form("aws access key", "docs.aws.amazon.com: IAM identifiers, unique id prefixes", (
        "botocore.exceptions.ClientError: (InvalidAccessKeyId) AKIA«u16» does not exist in our records",
        "assumed role with ASIA«u16» until 12:00",
    )),
    Form("aws bearer", "docs.aws.amazon.com: IAM identifiers, unique id prefixes", ("sts bearer ABIA«u16» refused", "credential ACCA«u16» refused")),
    Form("aws secret key", "docs.aws.amazon.com: configuration and credential file settings", (
        "aws_secret_access_key = «b40»",
        "{'SecretAccessKey': '«b40»'}",
    )),
    Form("aws session token", "docs.aws.amazon.com: temporary security credentials", ("export AWS_SESSION_TOKEN=IQoJb3JpZ2lu«b180»",)),
    Form("aws presigned", "docs.aws.amazon.com: SigV4 query parameters", (
        "404 for https://corp-ckpt.s3.us-east-1.amazonaws.com/a.pt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Security-Token=«b120»&X-Amz-Signature=«x64»",
    )),
    Form("aws bedrock key", "docs.aws.amazon.com: Amazon Bedrock API keys", ("AWS_BEARER_TOKEN_BEDROCK=ABSK«b128»", "bedrock refused ABSK«b128»")),
    Form("aws ecr login", "docs.aws.amazon.com: ECR registry authentication", ("docker login -u AWS -p «b120» 111122223333.dkr.ecr.us-east-1.amazonaws.com",)),
    Form("gcp api key", "cloud.google.com: manage API keys", ("google.api_core.exceptions.Forbidden: 403 key AIza«s35» is blocked",)),
    Form("gcp access token", "cloud.google.com: token types", ("print-access-token gave ya29.«s120»",)),
    Form("gcp oauth secret", "developers.google.com: OAuth 2.0 client secrets", ('"client_secret": "GOCSPX-«s28»"', "rejected GOCSPX-«s28»")),
    Form("gcp refresh token", "developers.google.com: OAuth 2.0 refresh token", ('"refresh_token": "1//0g«s90»"', "invalid_grant for 1//0e«s90»")),
    Form("gcp service account", "cloud.google.com: service account keys", (
        '{"type": "service_account", "private_key_id": "«x40»", "private_key": "-----BEGIN PRIVATE KEY-----\\nMII«b60»\\n«b60»\\n-----END PRIVATE KEY-----\\n"}',
    )),
    Form("gcp hmac", "cloud.google.com: Cloud Storage HMAC keys", ("gs_access_key_id = GOOG1E«u57»", "gs_secret_access_key = «b40»")),
    Form("azure account key", "learn.microsoft.com: storage connection strings", (
        "DefaultEndpointsProtocol=https;AccountName=corpdata;AccountKey=«b86»==;EndpointSuffix=core.windows.net",
    )),
    Form("azure sas", "learn.microsoft.com: shared access signatures", (
        "azcopy: https://corpdata.blob.core.windows.net/c?sv=2022-11-02&ss=b&sp=r&sig=«w20»%2F«w20»%3D",
        "sp=r&st=2026-01-01T00:00:00Z&spr=https&sv=2022-11-02&sr=c&sig=«w20»%2B«w20»%3D",
    )),
    Form("azure client secret", "learn.microsoft.com: Entra application credentials", ("AZURE_CLIENT_SECRET=«w3»8Q~«s34»", "AADSTS7000215: Invalid client secret «w3»8Q~«s34»")),
    Form("azure service bus", "learn.microsoft.com: Service Bus connection strings", ("Endpoint=sb://jobs.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=«b43»=",)),
    Form("azure openai", "learn.microsoft.com: Azure OpenAI REST reference", ("request headers {'api-key': '«x32»', 'host': 'x'}", "AZURE_OPENAI_API_KEY=«x32»")),
    Form("azure devops", "learn.microsoft.com: personal access tokens", ("git clone https://«user»:«l52»@dev.azure.com/corp/ml/_git/train",)),
    # forges
    Form("github classic", "docs.github.com: token formats", ("remote: Invalid token ghp_«w36»",)),
    Form("github oauth", "docs.github.com: token formats", ("gh auth: gho_«w36» expired",)),
    Form("github user", "docs.github.com: token formats", ("ghu_«w36» was revoked",)),
    Form("github server", "docs.github.com: token formats", ("fatal: unable to access with x-access-token ghs_«w36»",)),
    Form("github refresh", "docs.github.com: token formats", ("refreshed by ghr_«w36»",)),
    Form("github fine grained", "docs.github.com: token formats", ("git+https failed: github_pat_«w22»_«w59»",)),
    Form("github old", "docs.github.com: token formats (before 2021)", ("GITHUB_TOKEN=«x40»",)),
    Form("gitlab pat", "docs.gitlab.com: token prefixes", ("HTTP Basic: Access denied for glpat-«s20»", "401 for glpat-«s27».01.«l9»")),
    Form("gitlab deploy", "docs.gitlab.com: token prefixes", ("pip index with gldt-«s20»",)),
    Form("gitlab runner", "docs.gitlab.com: token prefixes", ("gitlab-runner register --token glrt-«s20»", "Runner glrt-t1_«s20» is offline")),
    Form("gitlab job", "docs.gitlab.com: token prefixes", ("CI_JOB_TOKEN glcbt-64_«s20» expired",)),
    Form("gitlab trigger", "docs.gitlab.com: token prefixes", ("curl -F token=glptt-«x40» -F ref=main", "pipeline started by glptt-«x40»")),
    Form("gitlab feed", "docs.gitlab.com: token prefixes", ("feed glft-«s20» is stale",)),
    Form("gitlab mail", "docs.gitlab.com: token prefixes", ("incoming glimt-«l25»",)),
    Form("gitlab agent", "docs.gitlab.com: token prefixes", ("agentk uses glagent-«s50»",)),
    Form("gitlab oauth app", "docs.gitlab.com: token prefixes", ("oauth app gloas-«x64»",)),
    Form("gitlab scim", "docs.gitlab.com: token prefixes", ("scim glsoat-«s20» denied",)),
    # services of this field
    Form("hugging face", "huggingface.co: user access tokens", ("401 Client Error: token hf_«w34» is not valid", "login('hf_«w34»')")),
    Form("openai project", "platform.openai.com: API keys", ("openai.AuthenticationError: Incorrect API key provided: sk-proj-«s74»T3BlbkFJ«s74»",)),
    Form("openai service", "platform.openai.com: service accounts", ("using sk-svcacct-«s60»", "using sk-admin-«s60»")),
    Form("openai old", "platform.openai.com: API keys", ("key sk-«w20»T3BlbkFJ«w20» is disabled",)),
    Form("anthropic", "docs.anthropic.com: API keys", ("anthropic.AuthenticationError: x-api-key sk-ant-api03-«s93»AA", "sk-ant-admin01-«s93»AA is revoked", "CLAUDE token sk-ant-oat01-«s93»AA")),
    Form("groq", "console.groq.com: API keys", ("groq says: bad key gsk_«w52»",)),
    Form("mistral", "docs.mistral.ai: quickstart", ("MISTRAL_API_KEY=«w32»", "Mistral(api_key='«w32»')")),
    Form("cohere", "docs.cohere.com: API keys", ("CO_API_KEY=«w40»", "export COHERE_API_KEY=«w40»")),
    Form("replicate", "replicate.com: API tokens", ("ReplicateError: r8_«w37» is unauthenticated",)),
    Form("together", "docs.together.ai: quickstart", ("TOGETHER_API_KEY=«x64»", "together: tgp_v1_«s43» is over its limit")),
    Form("fireworks", "docs.fireworks.ai: API keys", ("FIREWORKS_API_KEY=fw_«w24»", "fireworks.client.error: fw_«w24» is unknown")),
    Form("deepseek", "api-docs.deepseek.com: first API call", ("Authentication Fails, your api key sk-«x32» is invalid", "DEEPSEEK_API_KEY=sk-«x32»")),
    Form("xai", "docs.x.ai: quickstart", ("grok: Incorrect API key provided: xai-«w80»",)),
    Form("perplexity", "docs.perplexity.ai: quickstart", ("perplexity 401: pplx-«w48»",)),
    Form("pinecone", "docs.pinecone.io: authentication", ("PineconeApiException: pcsk_«w6»_«w62»", 'PINECONE_API_KEY="«uuid»"')),
    Form("openrouter", "openrouter.ai: authentication", ("OpenRouter: No auth for sk-or-v1-«x64»",)),
    Form("nvidia ngc", "docs.nvidia.com: NGC user guide", ("NGC_CLI_API_KEY=nvapi-«s64»", "docker login nvcr.io: $oauthtoken nvapi-«s64»")),
    Form("cerebras", "inference-docs.cerebras.ai: quickstart", ("cerebras: csk-«l48» refused",)),
    Form("langsmith", "docs.smith.langchain.com: API keys", ("LANGCHAIN: lsv2_pt_«x32»_«x10» is expired",)),
    Form("langfuse", "langfuse.com: API keys", ("langfuse auth check of sk-lf-«uuid» failed",)),
    Form("elevenlabs", "elevenlabs.io: authentication", ("xi-api-key: sk_«x48»",)),
    Form("jina", "jina.ai: API", ("jina says no to jina_«x32»«s28»",)),
    Form("kaggle", "kaggle.com: public API", ("KAGGLE_KEY=«x32»", '{"username":"«user»","key":"«x32»"}')),
    Form("wandb", "docs.wandb.ai: API keys", ("WANDB_API_KEY=«x40»", "wandb: Appending key for api.wandb.ai: «x40»", "wandb: using wandb_v1_«s77»")),
    Form("comet", "comet.com/docs: configuration", ("COMET_API_KEY=«w25»", "[comet]\napi_key=«w25»")),
    Form("neptune", "docs.neptune.ai: API token", ("NEPTUNE_API_TOKEN=eyJhcGlfYWRkcmVzcyI6«b100»==", "neptune.exceptions: token eyJhcGlfYWRkcmVzcyI6«b100» is not valid")),
    Form("mlflow", "mlflow.org: tracking server authentication", ("MLFLOW_TRACKING_PASSWORD=«password»", "MLFLOW_TRACKING_TOKEN=«s60»")),
    Form("clearml", "clear.ml/docs: clearml.conf", ('credentials {"access_key": "«U30»", "secret_key": "«s50»"}', "CLEARML_API_SECRET_KEY=«s50»")),
    Form("modal", "modal.com/docs: token", ("modal token set --token-id ak-«w22» --token-secret as-«w22»",)),
    Form("runpod", "docs.runpod.io: API keys", ("runpod: rpa_«U40»«l6» is invalid",)),
    Form("anyscale", "docs.anyscale.com: API keys", ("ANYSCALE_API_KEY=esecret_«l32»", "anyscale CLI token aph0_«s54» has expired")),
    # messengers, payment, mail
    Form("slack bot", "api.slack.com: token types", ("slack_sdk: xoxb-«d12»-«d13»-«w24» invalid_auth",)),
    Form("slack user", "api.slack.com: token types", ("xoxp-«d12»-«d12»-«d12»-«x32» was revoked",)),
    Form("slack app", "api.slack.com: token types", ("socket mode xapp-1-A0«U9»-«d13»-«x64»",)),
    Form("slack rotated", "api.slack.com: token rotation", ("rotating xoxe.xoxp-1-«w146»", "refresh with xoxe-1-«w146»")),
    Form("slack webhook", "api.slack.com: incoming webhooks", ("POST https://hooks.slack.com/services/T«U10»/B«U10»/«w24» 404",)),
    Form("discord bot", "discord.com/developers: authentication", ("discord.errors.LoginFailure: M«w25».G«w5».«s38»",)),
    Form("discord webhook", "discord.com/developers: webhooks", ("https://discord.com/api/webhooks/«d18»/«s68» answered 401",)),
    Form("telegram", "core.telegram.org: authorizing your bot", ("telegram.error.InvalidToken: «d10»:AA«s33»", "GET https://api.telegram.org/bot«d10»:AA«s33»/getMe")),
    Form("stripe", "docs.stripe.com: API keys", ("No such customer for sk_live_«w24»", "rk_live_«w24» lacks a permission")),
    Form("stripe hook", "docs.stripe.com: webhook signatures", ("signature check with whsec_«w32» failed",)),
    Form("twilio", "twilio.com/docs: API keys", ("TWILIO_AUTH_TOKEN=«x32»", "twilio key SK«x32» is unknown")),
    Form("sendgrid", "docs.sendgrid.com: API keys", ("sendgrid 403 for SG.«s22».«s43»",)),
    Form("mailgun", "documentation.mailgun.com: authentication", ("mailgun refused key-«x32»",)),
    # registries, data, secrets
    Form("npm", "docs.npmjs.com: access tokens", ("npm ERR! 403 with npm_«w36»",)),
    Form("pypi", "pypi.org/help: API tokens", ("twine upload: pypi-AgEIcHlwaS5vcmc«s150»",)),
    Form("docker hub", "docs.docker.com: access tokens", ("unauthorized: dckr_pat_«s27»", "unauthorized: dckr_oat_«s32»")),
    Form("docker config", "docs.docker.com: docker login", ('{"auths": {"ghcr.io": {"auth": "«b40»"}}}',)),
    Form("databricks", "docs.databricks.com: personal access tokens", ("databricks: Invalid access token dapi«x32»", "databricks: Invalid access token dapi«x32»-2")),
    Form("databricks oauth", "docs.databricks.com: OAuth M2M", ("client secret dose«x32» has expired",)),
    Form("snowflake", "docs.snowflake.com: connecting with the Python connector", (
        "snowflake.connector.connect(user='«user»', password='«password»', account='ab12345')",
        "snowsql -a ab12345 -u «user» SNOWSQL_PWD=«password»",
    )),
    Form("vault service", "developer.hashicorp.com: Vault tokens", ("vault login hvs.«s90»", "permission denied for hvs.CAESI«s90»")),
    Form("vault batch", "developer.hashicorp.com: Vault tokens", ("batch hvb.«s140» expired", "recovery hvr.«s90» used")),
    Form("vault old", "developer.hashicorp.com: upgrading to 1.0", ("X-Vault-Token: s.«w24»", "VAULT_TOKEN=s.«w24»")),
    Form("grafana", "grafana.com/docs: service accounts", ("grafana answered 401 to glsa_«w32»_«x8»",)),
    Form("digitalocean", "docs.digitalocean.com: personal access tokens", ("doctl: dop_v1_«x64» is bad",)),
    Form("sentry dsn", "docs.sentry.io: DSN", ("sentry_sdk.init('https://«x32»@o12345.ingest.sentry.io/678')",)),
    Form("kubernetes token", "kubernetes.io: service account tokens", ("token: eyJhbGciOiJSUzI1NiIsImtpZCI6I«s20».eyJpc3Mi«s60».«s86»",)),
    Form("kubeconfig key", "kubernetes.io: kubeconfig", ("    client-key-data: LS0tLS1CRUdJTiBSU0Eg«b120»",)),
    Form("bootstrap token", "kubernetes.io: bootstrap tokens", ("kubeadm join 10.0.0.1:6443 --token «l6».«l16»",)),
    Form("k8s secret literal", "kubernetes.io: kubectl create secret", ("kubectl create secret generic db --from-literal=password=«codelike»",)),
    # general forms
    Form("jwt", "RFC 7519", ("rejected eyJhbGciOiJIUzI1NiJ9.eyJzdWIi«s40».«s43»", "CI_JOB_JWT=eyJhbGciOiJSUzI1NiJ9.eyJzdWIi«s40».«s43»")),
    Form("jwt variable", "RFC 7519", ("ID_JWT=«s60»", "jwt = '«s60»'")),
    Form("pem rsa", "RFC 7468", ("-----BEGIN RSA PRIVATE KEY-----\nMIIE«b60»\n«b64»\n-----END RSA PRIVATE KEY-----",)),
    Form("pem openssh", "openssh: PROTOCOL.key", ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r«b58»\n«b70»\n-----END OPENSSH PRIVATE KEY-----",)),
    Form("pem cut", "RFC 7468", ("-----BEGIN EC PRIVATE KEY-----\nMHcC«b60»\n«b40»",)),
    Form("pem encrypted", "RFC 7468", ("-----BEGIN ENCRYPTED PRIVATE KEY-----\\nMIIF«b60»\\n«b64»\\n-----END ENCRYPTED PRIVATE KEY-----",)),
    Form("ssh public", "RFC 4253", ("ssh-rsa AAAAB3NzaC1yc2E«b120» «user»@«host»",)),
    Form("basic auth url", "RFC 3986", ("fatal: could not read from https://«user»:«password»@git.corp-lab.org/a.git", "pip: https://«user»:«w24»@nexus.corp-lab.org/simple failed")),
    Form("proxy url", "curl(1)", ("http_proxy=http://«user»:«password»@proxy.corp-lab.org:3128", "HTTPS_PROXY=«user»:«password»@proxy.corp-lab.org:3128")),
    Form("database url", "postgresql.org: connection URIs", ("optuna: postgresql+psycopg2://«user»:«password»@db.corp-lab.org:5432/runs", "redis://:«password»@cache:6379/0")),
    Form("bearer", "RFC 6750", ("Authorization: Bearer «s43»", "-H 'authorization: Bearer «s43»'")),
    Form("basic", "RFC 7617", ("> Authorization: Basic «w40»==", "{'Authorization': 'Basic «w40»=='}")),
    Form("cookie", "RFC 6265", ("Cookie: lang=en; session=«w32»", "< Set-Cookie: sid=«w32»; Path=/; HttpOnly", "{'Cookie': '_xsrf=2|«x8»|«x32»; user-id=«w40»'}")),
    Form("netrc", "curl: .netrc", ("machine api.wandb.ai\n  login user\n  password «x40»", "machine git.corp-lab.org login «user» password «codelike»")),
    Form("pgpass", "postgresql.org: the password file", ("db1.corp-lab.org:5432:runs:«user»:«password»",)),
    Form("mysql", "dev.mysql.com: command-line options", ("mysql -u root -p«password» -h db1", "mysqldump --user=root --password=«codelike» runs")),
    Form("sshpass", "sshpass(1)", ("sshpass -p «password» ssh root@10.0.0.3", "sshpass -p '«codelike»' scp a b:")),
    Form("docker login", "docs.docker.com: docker login", ("docker login -u ci -p «password» registry.corp-lab.org", "podman login --username ci --password «password» quay.io")),
    Form("redis-cli", "redis.io: redis-cli", ("redis-cli -h cache -a «password» ping",)),
    Form("curl user", "curl(1)", ("curl -u admin:«password» https://x.org/a", "curl --user 'admin:«codelike»' https://x.org/a")),
    Form("cifs mount", "mount.cifs(8)", ("mount -t cifs //fs/share /mnt -o username=«user»,password=«password»",)),
    Form("openssl pass", "openssl(1): pass phrase options", ("openssl rsa -in k.pem -passin pass:«password»",)),
    Form("jupyter", "jupyter-server docs: security", ("http://127.0.0.1:8888/lab?token=«x48»", "jupyter lab --ServerApp.token=«x48»")),
    Form("password value", "as programs print their settings", (
        'password: "«codelike»"',
        "DB_PASSWORD=«codelike»",
        "Config(host='db', password='«codelike»', port=3306)",
        "secret = '«codelike»'",
        '{"token": "«codelike»"}',
        "password=«marked»",
        "client_secret: «marked»",
        '"passwd": "«marked»"',
    )),
    Form("redis password", "docs.ray.io: ray start", ("ray start --address=10.0.0.1:6379 --redis-password='«password»'",)),
    # people
    Form("home", "FHS", ('File "/home/«user»/exp/train.py", line 3, in main',)),
    Form("data folder", "shared file systems", ('File "/data/«user»/exp/train.py", line 3, in main', "FileNotFoundError: [Errno 2] No such file or directory: '/data/«user»/runs/last.pt'", "/data2/«user»/envs/t/bin/python: bad interpreter")),
    Form("nfs folder", "shared file systems", ('File "/nfs/«user»/exp/train.py", line 3, in main', "cannot open /mnt/nfs/«user»/x.pt")),
    Form("gpfs home", "docs.cci.rpi.edu: file systems", ("/gpfs/u/home/ABCD/«user»/barn/train.py:12", "saved /gpfs/u/scratch/ABCD/«user»/ckpt.pt")),
    Form("raid folder", "docs.nvidia.com: DGX storage", ("OSError: [Errno 28] No space left on device: '/raid/«user»/ckpt'",)),
    Form("beegfs folder", "shared file systems", ("RuntimeError: Parent directory /beegfs/«user»/out does not exist.", "/work/beegfs/«user»/out is full")),
    Form("unc profile", "learn.microsoft.com: roaming profiles", ("Cannot open \\\\fs\\profiles\\«user»\\train.pt",)),
    Form("tilde", "bash(1): tilde expansion", ("python: can't open file '~«user»/train.py'", "source ~«user»/venv/bin/activate")),
    Form("squeue", "slurm.schedmd.com: squeue", ("             81213       gpu train_ll  «user»  R    1:02:03      4 dgx[01-04]", "  81214 a100 bert «user» PD 0:00 2 (Resources)")),
    Form("ps aux", "ps(1)", ("«user»   12345 99.0  1.2 8123456 789000 pts/0  Rl+  10:00   0:12 python train.py",)),
    Form("ps ef", "ps(1)", ("«user»   12345       1  0 10:00 ?        00:00:01 python train.py",)),
    Form("top", "top(1)", ("  12345 «user»    20   0   12.3g   1.2g 300m R  99.9   1.0   0:12.34 python",)),
    Form("ls", "ls(1)", ("-rw-r----- 1 «user» mlgroup 1073741824 Nov 28 03:01 ckpt.pt", "drwxr-xr-x. 12 «user» «user» 4.0K 2026-11-28 03:01 runs")),
    Form("passwd", "passwd(5)", ("«user»:x:1042:100:«person»:/home/«user»:/bin/bash",)),
    Form("sudo", "sudo(8)", (
        "sudo:    «user» : TTY=pts/0 ; PWD=/data ; USER=root ; COMMAND=/usr/bin/nvidia-smi",
        "[sudo] password for «user»: ",
        "«user» is not in the sudoers file.  This incident will be reported.",
    )),
    Form("sshd", "sshd(8)", ("Accepted publickey for «user» from «ipv4» port 51234 ssh2", "Failed password for invalid user «user» from «ipv4» port 51234 ssh2")),
    Form("scontrol", "slurm.schedmd.com: scontrol", ("JobId=81213 JobName=bert UserId=«user»(1042) GroupId=ml(100)",)),
    Form("chown", "chown(1)", ("chown: changing ownership of 'x': «user»:mlgroup", "chown -R «user»:mlgroup runs")),
    Form("e-mail", "RFC 5322", ("Author: «person» <«user»@corp-lab.org>", "#SBATCH --mail-user=«user»@corp-lab.org")),
    # machines
    Form("srun", "slurm.schedmd.com: srun", ("srun: error: «host»: task 3: Exited with exit code 1", "srun: error: «host»: tasks 0-7: Killed", "srun: error: Node failure on «host»")),
    Form("slurmstepd", "slurm.schedmd.com: slurmd", ("slurmstepd: error: *** STEP 81213.0 ON «host» CANCELLED AT 2026-11-28T03:01:02 DUE TO TIME LIMIT ***", "slurmstepd-«host»: error: Detected 1 oom_kill event in StepId=81213.0")),
    Form("ucx", "openucx docs: logging", ("[1650465527.778184] [«host»:13452:0]     ib_md.c:309  UCX  ERROR ibv_reg_mr failed", "[«host»:13452:0:13452] Caught signal 11 (Segmentation fault: address not mapped)")),
    Form("open mpi", "docs.open-mpi.org: mpirun", (
        "[«host»:12345] *** An error occurred in MPI_Allreduce",
        "  Local host:   «host»",
        "mpirun noticed that process rank 3 with PID 0 on node «host» exited on signal 9 (Killed).",
        "[«host»:12345] PMIX ERROR: UNREACHABLE in file server.c at line 2198",
    )),
    Form("mpich hydra", "mpich docs: hydra", ("[proxy:0:1@«host»] HYD_pmcd_pmip_control_cmd_cb: assert failed", "[mpiexec@«host»] control_cb: connection to proxy lost")),
    Form("mvapich", "mvapich docs", ("[«host»:mpi_rank_3][error_sighandler] Caught error: Segmentation fault (signal 11)",)),
    Form("pdsh", "pdsh(1)", ("«host»: bash: line 1: nvidia-smi: command not found", "pdsh@«host»: worker-2: ssh exited with exit code 255")),
    Form("kubernetes", "kubernetes.io: kubectl", (
        "Successfully assigned ml/train-0 to «host»",
        "node/«host» cordoned",
        "Node:         «host»/«private»",
        "Warning  Failed  3m  kubelet, «host»  Error: ImagePullBackOff",
    )),
    Form("ray", "docs.ray.io: logging", ("(train_fn pid=1234, ip=«private») RuntimeError: x", "ray.exceptions.NodeDiedError: node IP: «ipv4», node name «host» was terminated")),
    Form("gaierror", "docs.python.org: socket", (
        "socket.gaierror: [Errno -2] Name or service not known: '«host»'",
        "[W socket.cpp:767] [c10d] The IPv6 network addresses of («host», 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
        "ssh: Could not resolve hostname «host»: Name or service not known",
        "getaddrinfo(«host», 29500) failed",
    )),
    Form("hostfile", "deepspeed docs: hostfile", ("«host» slots=8", "«private» «host» «host».corp-lab.org")),
    Form("nccl", "docs.nvidia.com: NCCL_DEBUG", ("«host»:2211:2290 [3] NCCL WARN Call to connect returned Connection timed out", "NCCL WARN socketProgress: Connection closed by remote peer «host»<40123>")),
    Form("prompt", "bash(1): prompting", ("«user»@«host»:~/exp$ python train.py", "[«user»@«host» exp]$ torchrun train.py", "(base) «user»@«host»:/tmp$ ls")),
    Form("aws host", "docs.aws.amazon.com: EC2 hostname types", ("ip-«dashed».us-west-2.compute.internal is gone", "ip-«dashed»: step 3", "ec2-«dashed».compute-1.amazonaws.com refused")),
    Form("gcp host", "cloud.google.com: internal DNS", ("cannot reach «host».us-central1-a.c.corp-ml-17.internal", "gke-ml-pool-«x8»-«l4» NotReady")),
    Form("azure host", "learn.microsoft.com: name resolution", ("«host».internal.cloudapp.net is gone", "aks-gpunp-«d8»-vmss00000a NotReady")),
    Form("public ipv4", "RFC 791", (
        "Connection from «ipv4» port 51234",
        "ssh ubuntu@«ipv4»",
        "dial tcp «ipv4»:6443: i/o timeout",
        "no route to host («ipv4»)",
        "ping: «ipv4» unreachable",
    )),
    Form("mac", "IEEE 802", ("link/ether «x2»:«x2»:«x2»:1b:2c:3d brd ff:ff:ff:ff:ff:ff",)),
    Form("mac cisco", "cisco.com: MAC address notation", ("port Gi1/0/1 learned «x4».«x4».«x4»", "MAC «x4».«x4».«x4» is flapping")),
    Form("machine id", "machine-id(5)", ("  Machine ID: «x32»", "/etc/machine-id: «x32»", "_MACHINE_ID=«x32»")),
    Form("boot id", "hostnamectl(1)", ("     Boot ID: «x32»", "System UUID:                «uuid»")),
    Form("gpu uuid", "docs.nvidia.com: nvidia-smi", ("GPU 0: NVIDIA H100 (UUID: GPU-«uuid»)",)),
    Form("gpu serial", "docs.nvidia.com: nvidia-smi", ("    Serial Number                         : «d13»",)),
    Form("ib guid", "infiniband ibstat(8)", ("\t\tPort GUID: 0x«x16»", "node_guid: «x4»:«x4»:«x4»:«x4»")),
    Form("container id", "docs.docker.com: docker ps", ("Container ID:   containerd://«x64»", "could not kill container «x64»")),
)
# fmt: on
_MOST_LINES = max(len(form.lines) for form in FORMS)
