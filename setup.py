"""Packaging."""

import setuptools

setuptools.setup(
    name="batch-ppo",
    version="0.1.0",
    description="Batched reinforcement learning inside the TensorFlow graph.",
    license="Apache-2.0",
    packages=setuptools.find_packages(include=[
        "agents", "agents.*", "configs", "configs.*"]),
    python_requires=">=3.10",
    install_requires=[
        "cloudpickle>=3.0",
        "gymnasium[classic-control,mujoco]>=1.1,<2",
        "imageio-ffmpeg>=0.5",
        "mujoco>=3.2,<5",
        "numpy>=1.26,<3",
        "pyyaml>=6.0",
        "tensorboard>=2.18,<3",
        "tensorflow>=2.18,<2.22",
        "tensorflow-probability[tf]>=0.25,<0.26",
        "tqdm>=4.66",
    ],
    extras_require={
        "test": ["pytest>=8.0", "pytest-xdist>=3.5"],
        "dev": ["pytest>=8.0", "pytest-xdist>=3.5", "mypy>=1.10", "ruff>=0.6",
                "types-PyYAML", "types-tqdm"],
        "benchmarks": [
            "envpool>=1.1; platform_system == 'Linux'", "matplotlib>=3.8",
            "stable-baselines3>=2.4"],
    },
)
