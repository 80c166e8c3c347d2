"""Two hundred lines of logs with something planted in each that must not be published."""

from __future__ import annotations

import random
import string

_LETTERS, _HEX, _WORD = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_lowercase
PEOPLE = ("alice.meyer", "bkowalski", "chenwei", "d_okafor", "erin-s", "fgarcia7", "hannah", "ivanov")
HOSTS = (
    "gpu-node-17",
    "dgx03",
    "cn0412.hpc.example-univ.edu",
    "ip-172-31-9-12",
    "a100-04.cluster.local",
    "r7i3n2",
)


def planted(count: int = 200, seed: int = 11) -> list[tuple[str, tuple[str, ...]]]:
    """``count`` lines, each with the pieces of it that nobody else may read."""
    lot = random.Random(seed)

    def some(alphabet: str, length: int) -> str:
        # the first characters hold a digit and both cases, as real tokens do
        return "".join(lot.choice(alphabet) for _ in range(length))

    def token(length: int) -> str:
        return "a1B" + some(_LETTERS, length - 3)

    def person() -> str:
        return lot.choice(PEOPLE)

    def host() -> str:
        return lot.choice(HOSTS)

    def address() -> str:
        return ".".join(
            str(number) for number in (lot.choice((10, 54, 131, 203)), *lot.choices(range(1, 254), k=3))
        )

    def password() -> str:
        return lot.choice(
            ("hunterhunter", "Tr0ub4dor&3", "correct-horse", "s3cr3t!", "letmein99", "Winter2024!")
        )

    makers = [
        lambda: ("export HF_TOKEN=hf_{}", token(34)),
        lambda: ("huggingface_hub: token hf_{} is valid", token(34)),
        lambda: ("WANDB_API_KEY={}", some(_HEX, 40)),
        lambda: ("wandb login {}", some(_HEX, 40)),
        lambda: ("os.environ['WANDB_API_KEY'] = '{}'", some(_HEX, 40)),
        lambda: ("git clone https://x-access-token:ghp_{}@github.com/org/repo.git", token(36)),
        lambda: ("fatal: could not read from https://ci:{}@git.example.net/team/repo.git/", token(20)),
        lambda: ("remote: github_pat_{} expired", token(60)),
        lambda: ("GITLAB glpat-{}", token(20)),
        lambda: ("OPENAI_API_KEY: sk-proj-{}", token(40)),
        lambda: ('client = OpenAI(api_key="sk-{}")', token(40)),
        lambda: ("ANTHROPIC sk-ant-api03-{}", token(60)),
        lambda: ("aws_access_key_id = AKIA{}", some(string.ascii_uppercase + "234567", 16)),
        lambda: ("aws_secret_access_key = {}", some(_LETTERS + "/+", 40)),
        lambda: ("AWS_SECRET_ACCESS_KEY={}", some(_LETTERS, 40)),
        lambda: ("AWS_SESSION_TOKEN={}", token(120)),
        lambda: ("https://b.s3.amazonaws.com/c.pt?X-Amz-Credential={}&X-Amz-Expires=300", token(20)),
        lambda: ("GET https://b.s3.amazonaws.com/c.pt?X-Amz-Signature={}&n=1", some(_HEX, 64)),
        lambda: ("https://acct.blob.core.windows.net/d/f?sv=2022-11-02&sig={}&sp=r", token(43)),
        lambda: ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};", token(80)),
        lambda: ("google: AIza{}", token(35)),
        lambda: ("Authorization: Bearer {}", token(40)),
        lambda: ("{{'Authorization': 'Basic {}'}}", token(24)),
        lambda: ("jwt eyJhbGciOiJIUzI1NiJ9.eyJz{}.{}", token(40), token(30)),
        lambda: ("SLACK_BOT=xoxb-123456789-{}", token(24)),
        lambda: ("POST https://hooks.slack.com/services/T00AB/B00CD/{} 200", token(24)),
        lambda: ("Cookie: session={}; path=/", token(30)),
        lambda: ("X-Auth-Token: {}", token(30)),
        lambda: ("ngc: nvapi-{}", token(60)),
        lambda: ("NGC_API_KEY='{}'", token(40)),
        lambda: ("DB_PASSWORD={}", password()),
        lambda: ("password: {}", password()),
        lambda: ('{{"user": "svc", "password": "{}"}}', password()),
        lambda: ("mysql --password={} -h db", password()),
        lambda: ("python train.py --wandb-key {} --lr 1e-3", some(_HEX, 40)),
        lambda: ("python train.py --hf_token={} --lr 1e-3", token(30)),
        lambda: ("Namespace(lr=0.1, api_key='{}', epochs=3)", token(32)),
        lambda: ("MLFLOW_TRACKING_URI=https://svc:{}@mlflow.example.net", token(18)),
        lambda: ("redis://:{}@cache:6379/0", password()),
        lambda: ("machine api.wandb.ai login user password {}", some(_HEX, 40)),
        lambda: ("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----", token(70)),
        lambda: ("ssh-rsa AAAAB3NzaC1yc2E{} x", token(60)),
        lambda: ("npm_{}", token(36)),
        lambda: ("dapi{} databricks", some(_HEX, 32)),
        lambda: ("telegram 1234567890:AA{}", token(33)),
        lambda: ('CLIENT_SECRET = "{}"', token(30)),
        lambda: ('  File "/home/{}/proj/train.py", line 3, in main', person()),
        lambda: ('  File "/Users/{}/proj/train.py", line 3, in main', person()),
        lambda: ('  File "C:\\Users\\{}\\proj\\train.py", line 3, in main', person()),
        lambda: ("FileNotFoundError: '/gpfs/home/{}/data/x.pt'", person()),
        lambda: ("saving to /lustre/scratch/{}/ckpt/step10.pt", person()),
        lambda: ("/data/users/{}/env/bin/python: No module named x", person()),
        lambda: ("No space left on device: '/mnt/beegfs/home/{}/tmp'", person()),
        lambda: ("/tmp/torchinductor_{}/ab/cab.py:12", person()),
        lambda: ("USER={} SHELL=/bin/bash", person()),
        lambda: ("uid=1042({}) gid=100(users)", person()),
        lambda: ("{}@{}:~/proj$ python train.py", person(), host()),
        lambda: ("wandb: Currently logged in as: {} (team)", person()),
        lambda: ("wandb: View run at https://wandb.ai/{}/proj/runs/ab12cd", person()),
        lambda: ("contact {}@research.example-univ.edu", person()),
        lambda: ("{}:2211:2290 [0] NCCL INFO Bootstrap : Using eth0", host()),
        lambda: ("MASTER_ADDR={} MASTER_PORT=29500", host()),
        lambda: ("  host      : {}", host()),
        lambda: ("Nov 28 03:01:02 {} kernel: NVRM: Xid (PCI:0000:3b:00): 79", host()),
        lambda: ("2026-11-28T03:01:02+00:00 {} slurmd[311]: launch task", host()),
        lambda: ("SLURM_JOB_NODELIST={}", lot.choice(("gpu[003-018]", "dgx-a[1,4-7]", "cn0412"))),
        lambda: (
            "[W socket.cpp:663] The client socket has failed to connect to [{}]:29500 (errno: 110)",
            host(),
        ),
        lambda: ("rendezvous at c10d://{}:29400", host()),
        lambda: ("SLURMD_NODENAME={}", host()),
        lambda: ("NCCL WARN connect to {}<40123> failed : Connection refused", address()),
        lambda: ("tcp://{}:29500", address()),
        lambda: ("Connection closed by peer [{}]:21345", address()),
        lambda: ("{}: step 12 loss 0.3", address()),
        lambda: ("inet6 fe80::{}:890a scope link", "1ff:fe" + some(_HEX, 2) + ":4567"),
        lambda: ("ether {}", ":".join(some(_HEX, 2) for _ in range(5)) + ":0f"),
        lambda: ("GPU 0: NVIDIA A100 (UUID: GPU-{})", "8a1b2c3d-1111-2222-3333-" + some(_HEX, 12)),
        lambda: ("    Serial Number                         : {}", some("123456789", 13)),
        lambda: ("    Board Serial: {}", some("123456789", 10)),
        lambda: ("node guid: 0x{}", some(_HEX, 16)),
        lambda: ("arn:aws:iam::{}:role/train", some("123456789", 12)),
        lambda: ("instance i-{} is gone", some(_HEX, 17)),
    ]
    lines: list[tuple[str, tuple[str, ...]]] = []
    for number in range(count):
        form, *pieces = makers[number % len(makers)]()
        lines.append((form.format(*pieces), tuple(pieces)))
    return lines
