"""Package metadata and dependencies."""

import pathlib

import setuptools

_ATARI = ["ale-py>=0.10", "opencv-python-headless>=4.8"]
_BOX2D = ["box2d>=2.3.10"]
_ENVPOOL = [
    "envpool>=1.1; platform_system == 'Linux' and python_version >= '3.11'"]
_ONNX = ["onnxruntime>=1.18", "tf2onnx>=1.16.1"]
_SWEEP = ["optuna>=4.9,<6"]
_TFLITE = ["ai-edge-litert>=1.0"]
_TEST = ["build>=1.0", "ipykernel>=6.0", "nbclient>=0.8", "pytest>=9.0",
         "pytest-xdist>=3.7", *_ATARI, *_BOX2D, *_ENVPOOL,
         *_ONNX, *_SWEEP, *_TFLITE]

setuptools.setup(
    name="batch-ppo",
    version="0.1.0",
    description="Batched reinforcement learning inside the TensorFlow graph.",
    long_description=(
        pathlib.Path(__file__).parent / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=[*setuptools.find_packages(include=["agents", "agents.*"]),
              "agents.configs", "agents.configs.presets"],
    # Wheels contain `configs/` as `agents/configs`.
    package_dir={"agents.configs": "configs"},
    package_data={
        "agents.training.monitoring": ["*.json", "*.yaml"],
        "agents.export": ["*.csv", "formats/*.md", "templates/*.md"],
        "agents.reports": ["*.csv", "*.html", "*.mplstyle"]},
    entry_points={"console_scripts": ["batch-ppo = agents.__main__:main"]},
    python_requires=">=3.10",
    install_requires=[
        "cloudpickle>=3.0",
        "gymnasium[classic-control,mujoco]>=1.1,<2",
        "imageio-ffmpeg>=0.5",
        "matplotlib>=3.8",
        "mujoco>=3.2,<5",
        "numpy>=1.26,<3",
        "pillow>=10.1",
        "pyyaml>=6.0",
        "scipy>=1.15",
        "tensorboard>=2.18,<3",
        "tensorflow>=2.18,<2.22",
        "tensorflow-probability[tf]>=0.25,<0.26",
        "tqdm>=4.66",
    ],
    extras_require={
        "test": _TEST,
        "dev": [*_TEST, "mypy>=1.10", "ruff>=0.6", "types-PyYAML",
                "types-tqdm"],
        "atari": _ATARI,
        "box2d": _BOX2D,
        # dm-control 1.0.50 cannot be imported with MuJoCo 4.
        "dm-control": ["dm-control>=1.0.20", "mujoco<4", "shimmy>=2.0"],
        "envpool": _ENVPOOL,
        "onnx": _ONNX,
        "pixels": ["opencv-python-headless>=4.8"],
        # Fetch, Hand and Kitchen of gymnasium-robotics 1.4.2 fail with MuJoCo
        # 3.12 and later.
        "robotics": ["gymnasium-robotics>=1.3", "mujoco<3.12"],
        "sweep": _SWEEP,
        "tflite": _TFLITE,
        "benchmarks": [*_ENVPOOL, "stable-baselines3>=2.4"],
    },
)
